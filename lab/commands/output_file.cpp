// SPDX-License-Identifier: Apache-2.0
#include "commands/output_file.h"

#include <fstream>

namespace firebreak::commands {

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status{} : fail(ErrorCode::Internal, "cannot write " + path);
}

}  // namespace firebreak::commands
