// SPDX-License-Identifier: Apache-2.0
/// The folders of the documents' tables, and which of them CMake lets include which.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tidy/source_tree.h"

namespace firebreak::tidy {

/// The page that a folder without a row is told of.
inline constexpr std::string_view folder_table_path = "ARCHITECTURE.md";

/// A row: a folder and whom it names in its last column, and the page and line where it stands.
struct FolderRow {
  std::string folder;
  std::set<std::string> knows;
  std::string path;
  int line = 0;
};

/// The rows of every table, in any document, whose first line is "| folder | one idea | knows |". A name in
/// the last column may leave out `lab/`, or `src/` and the wing; it is whole here.
std::vector<FolderRow> folder_rows(const SourceTree& tree);

/// Gives what the targets of each folder link, but for tests and shared libraries, as folders; without
/// itself. A folder is a row's, or, where no row's folder is around the target, the target's own.
std::map<std::string, std::set<std::string>> folder_graph(const SourceTree& tree,
                                                          const std::vector<FolderRow>& rows);

}  // namespace firebreak::tidy
