// SPDX-License-Identifier: Apache-2.0
/// Who may know whom: the project's map as a table.
#pragma once

#include <span>
#include <string_view>

namespace firebreak::tidy {

/// One folder and the folders it names. What those name is allowed too.
struct FolderRow {
  std::string_view folder;
  std::span<const std::string_view> knows;
};

/// The whole map.
std::span<const FolderRow> folder_map();

/// The folder of the map in which this path stands (the longest that fits), empty when in none.
std::string_view mapped_folder(std::string_view path);

/// True when files of `from` may include files of `to`; both are names from the map.
bool may_know(std::string_view from, std::string_view to);

}  // namespace firebreak::tidy
