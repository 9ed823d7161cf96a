// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/folder_graph.h"

#include <algorithm>
#include <sstream>

#include "tools/tidy/target_map.h"

namespace firebreak::tidy {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" `");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" `") - begin + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream rest{std::string(text)};
  for (std::string part; std::getline(rest, part, separator);) parts.push_back(trimmed(part));
  return parts;
}

/// The longest of the rows' folders around `folder`.
std::string row_around(const std::vector<FolderRow>& rows, const std::string& folder) {
  std::string best;
  for (const FolderRow& row : rows) {
    if ((folder + "/").starts_with(row.folder + "/") && row.folder.size() > best.size()) best = row.folder;
  }
  return best.empty() ? folder : best;
}

/// The path that a name of the last column stands for: the folder of lab/ with that name, else the folder of
/// src/ whose path ends with it.
std::string whole(const std::vector<FolderRow>& rows, const std::string& name) {
  std::string found = name;
  for (const FolderRow& row : rows) {
    if (row.folder == "lab/" + name) return row.folder;
    if (row.folder.starts_with("src/") && row.folder.ends_with("/" + name)) found = row.folder;
  }
  return found;
}

/// Adds the rows of one document's tables, with the names of the last column as they stand there.
void read_rows(const SourceFile& page, std::vector<FolderRow>& rows) {
  bool in_table = false;
  int number = 0;
  std::istringstream lines(page.text());
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line == "| folder | one idea | knows |") in_table = true;
    if (!line.starts_with("|")) in_table = false;
    const auto cells = split(line, '|');  // the first is empty
    if (!in_table || cells.size() < 4 || !line.starts_with("| `")) continue;
    FolderRow row{cells[1], {}, page.path(), number};
    for (std::string& name : split(cells.back(), ',')) {
      if (!name.empty() && name != "-") row.knows.insert(std::move(name));
    }
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<FolderRow> folder_rows(const SourceTree& tree) {
  std::vector<FolderRow> rows;
  for (const SourceFile& file : tree.files()) {
    if (file.path().ends_with(".md")) read_rows(file, rows);
  }
  for (FolderRow& row : rows) {
    std::set<std::string> knows;
    for (const std::string& name : row.knows) knows.insert(whole(rows, name));
    row.knows = std::move(knows);
  }
  return rows;
}

std::map<std::string, std::set<std::string>> folder_graph(const SourceTree& tree,
                                                          const std::vector<FolderRow>& rows) {
  const TargetMap map(tree);
  std::map<std::string, std::set<std::string>> graph;
  for (const Target& target : tree.targets()) {
    if (target.kind == TargetKind::Test) continue;
    const std::string folder = row_around(rows, target.folder);
    auto& knows = graph[folder];
    for (const std::string& name : target.direct) {
      const Target* linked = map.find(name);
      if (linked == nullptr || linked->kind != TargetKind::Library) continue;
      const std::string other = row_around(rows, linked->folder);
      if (other != folder) knows.insert(other);
    }
  }
  return graph;
}

}  // namespace firebreak::tidy
