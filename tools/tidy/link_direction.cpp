// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/folder_graph.h"
#include "tools/tidy/rule.h"
#include "tools/tidy/target_map.h"

namespace firebreak::tidy {
namespace {

using Graph = std::map<std::string, std::set<std::string>>;

bool reaches(const Graph& graph, const std::string& from, const std::string& to) {
  std::vector<std::string> reached{from};
  std::set<std::string> seen;
  while (!reached.empty()) {
    const std::string folder = reached.back();
    reached.pop_back();
    const auto row = graph.find(folder);
    if (row == graph.end() || !seen.insert(folder).second) continue;
    if (row->second.contains(to)) return true;
    reached.insert(reached.end(), row->second.begin(), row->second.end());
  }
  return false;
}

}  // namespace

std::vector<Finding> check_link_direction(const SourceTree& tree) {
  std::vector<Finding> findings;
  const TargetMap map(tree);
  for (const Target& target : tree.targets()) {
    for (const std::string& name : target.direct) {
      const Target* linked = map.find(name);
      if (linked == nullptr || !target.folder.starts_with("src/") || !linked->folder.starts_with("lab/"))
        continue;
      findings.push_back({list_of(target), line_of(tree, target), "link-direction",
                          target.name + " links " + name + ": nothing in src/ knows the laboratory"});
    }
  }
  const Graph graph = folder_graph(tree, folder_rows(tree));
  for (const auto& [folder, knows] : graph) {
    if (reaches(graph, folder, folder))
      findings.push_back({folder + "/CMakeLists.txt", 1, "link-direction",
                          folder + " knows itself by way of another folder"});
  }
  return findings;
}

}  // namespace firebreak::tidy
