// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "tools/tidy/includes.h"
#include "tools/tidy/rule.h"
#include "tools/tidy/target_map.h"

namespace firebreak::tidy {
namespace {

using TargetSet = std::set<const Target*>;

/// Finds whose files each target includes itself.
std::map<const Target*, TargetSet> included_targets(const SourceTree& tree, const TargetMap& map) {
  std::map<const Target*, TargetSet> included;
  for (const SourceFile& file : tree.files()) {
    for (const Include& include : includes_of(file)) {
      const SourceFile* to = included_file(tree, include);
      if (to == nullptr) continue;
      for (const Target* from : map.owners(file.path()))
        included[from].insert(map.owners(to->path()).begin(), map.owners(to->path()).end());
    }
  }
  return included;
}

/// Something of the link itself, or of a part of its folder that it passes on.
bool comes_through(const TargetMap& map, const Target& linked, const TargetSet& used) {
  if (used.contains(&linked)) return true;
  return std::ranges::any_of(linked.passed_on, [&](const std::string& name) {
    const Target* part = map.find(name);
    return part != nullptr && part->folder == linked.folder && used.contains(part);
  });
}

}  // namespace

std::vector<Finding> check_unused_links(const SourceTree& tree) {
  std::vector<Finding> findings;
  const TargetMap map(tree);
  const auto included = included_targets(tree, map);
  for (const Target& target : tree.targets()) {
    const auto used = included.find(&target);
    for (const std::string& name : target.direct) {
      const Target* linked = map.find(name);
      if (linked == nullptr || linked->kind != TargetKind::Library) continue;
      if (used != included.end() && comes_through(map, *linked, used->second)) continue;
      findings.push_back({list_of(target), line_of(tree, target), "unused-link",
                          target.name + " links " + name + " and includes nothing of it"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
