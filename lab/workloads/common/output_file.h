// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "ground/base/result.h"

namespace firebreak::workloads {

/// Writes beside `path` and renames, so that whoever looks sees the old file, or the whole new one, never a
/// part.
Status write_whole_file(const std::filesystem::path& path, std::string_view content);

}  // namespace firebreak::workloads
