// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/tidy/includes.h"
#include "tools/tidy/rule.h"
#include "tools/tidy/target_map.h"

namespace firebreak::tidy {
namespace {

bool any_may_be_included(const TargetMap& map, const Target& from, const std::set<const Target*>& owners) {
  return std::ranges::any_of(owners, [&](const Target* to) { return map.may_include(from, *to); });
}

/// Says what is wrong with one include of a file of these targets; empty when nothing is.
std::string objection(const SourceTree& tree, const TargetMap& map, const std::set<const Target*>& from,
                      const Include& include) {
  const SourceFile* file = included_file(tree, include);
  if (file == nullptr && !include.quoted) return {};
  if (file == nullptr)
    return "\"" + include.name + "\" is not a path from src/, lab/, include/ or the repository's root";
  const auto& owners = map.owners(file->path());
  for (const Target* target : from) {
    if (any_may_be_included(map, *target, owners)) continue;
    return target->name + " does not link " + (owners.empty() ? file->path() : (*owners.begin())->name);
  }
  return {};
}

}  // namespace

std::vector<Finding> check_include_direction(const SourceTree& tree) {
  std::vector<Finding> findings;
  const TargetMap map(tree);
  for (const SourceFile& file : tree.files()) {
    // The kernel's own build says what its files include. What measures hardware is built on that machine.
    const bool is_built_elsewhere =
        file.path().starts_with("kernel/") || file.path().starts_with("tests/hardware/");
    if (!file.is_cpp() || is_built_elsewhere) continue;
    const auto report = [&](int line, std::string message) {
      findings.push_back({file.path(), line, "include-direction", std::move(message)});
    };
    const auto& from = map.owners(file.path());
    if (from.empty()) {
      report(1, "CMake builds nothing in this folder");
      continue;
    }
    for (const Include& include : includes_of(file)) {
      std::string message = objection(tree, map, from, include);
      if (!message.empty()) report(include.line, std::move(message));
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
