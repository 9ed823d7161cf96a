// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/output_file.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace firebreak::workloads {

Status write_whole_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".part";
  std::error_code ignored;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) {
      std::filesystem::remove(temporary, ignored);
      return fail(ErrorCode::ResourceExhausted, fmt::format("cannot write {}", temporary.string()),
                  "does the folder exist, and is there space in it?");
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::filesystem::remove(temporary, ignored);
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot rename {}: {}", temporary.string(), error.message()));
  }
  return {};
}

}  // namespace firebreak::workloads
