// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/tidy/folder_graph.h"
#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

std::string joined(const std::set<std::string>& from, const std::set<std::string>& without) {
  std::string text;
  for (const std::string& name : from) {
    if (!without.contains(name)) text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

/// Tests may use everything, and stand in no table.
bool wants_row(const std::string& folder) { return !folder.starts_with("tests/") && folder != "tests"; }

}  // namespace

std::vector<Finding> check_folder_table(const SourceTree& tree) {
  std::vector<Finding> findings;
  const auto report = [&](const FolderRow& row, std::string message) {
    findings.push_back({row.path, row.line, "folder-table", std::move(message)});
  };
  if (tree.find(folder_table_path) == nullptr) return findings;
  const auto rows = folder_rows(tree);
  auto graph = folder_graph(tree, rows);
  for (const FolderRow& row : rows) {
    const auto built = graph.find(row.folder);
    if (built == graph.end()) {
      const bool of_cmake = row.folder.starts_with("src/") || row.folder.starts_with("lab/");
      if (of_cmake) report(row, "CMake builds nothing in " + row.folder);
      continue;
    }
    if (const auto missing = joined(built->second, row.knows); !missing.empty())
      report(row, row.folder + " links what the table does not say it knows: " + missing);
    if (const auto unlinked = joined(row.knows, built->second); !unlinked.empty())
      report(row, row.folder + " is said to know what it does not link: " + unlinked);
    graph.erase(built);
  }
  for (const auto& [folder, knows] : graph) {
    if (wants_row(folder))
      findings.push_back(
          {std::string(folder_table_path), 1, "folder-table", folder + " has no row in a table of folders"});
  }
  return findings;
}

}  // namespace firebreak::tidy
