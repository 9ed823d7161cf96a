// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tools/tidy/rule.h"
#include "tools/tidy/target_map.h"

namespace firebreak::tidy {
namespace {

/// A wing of src/ and the wings that its libraries and programs may link besides their own.
struct Wing {
  std::string_view name;
  std::string_view knows;
};

constexpr std::array wings{
    Wing{"ground", ""},
    Wing{"shared", "ground"},
    Wing{"kernels", "ground"},
    Wing{"program", "ground shared kernels"},
    Wing{"agent", "ground shared"},
    Wing{"commands", "ground shared kernels program agent"},
};

/// The wing of a folder; empty for a folder that is not in src/.
std::string_view wing_of(std::string_view folder) {
  constexpr std::string_view root = "src/";
  if (!folder.starts_with(root)) return {};
  folder.remove_prefix(root.size());
  return folder.substr(0, folder.find('/'));
}

/// Tells whether the words of `text`, which single spaces part, contain `word`.
bool has_word(std::string_view text, std::string_view word) {
  return (" " + std::string(text) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

/// Says what is wrong with a link from one wing into another; empty when nothing is.
std::string objection(std::string_view from, std::string_view to) {
  if (from.empty() || from == to) return {};
  const auto wing = std::ranges::find(wings, from, &Wing::name);
  if (wing == wings.end()) return std::string(from) + " is no wing of src/";
  if (to.empty() || has_word(wing->knows, to)) return {};
  return "src/" + std::string(from) + " does not know src/" + std::string(to);
}

}  // namespace

std::vector<Finding> check_wing_direction(const SourceTree& tree) {
  std::vector<Finding> findings;
  const TargetMap map(tree);
  for (const Target& target : tree.targets()) {
    if (target.kind == TargetKind::Test) continue;
    for (const std::string& name : target.direct) {
      const Target* linked = map.find(name);
      if (linked == nullptr) continue;
      const std::string message = objection(wing_of(target.folder), wing_of(linked->folder));
      if (message.empty()) continue;
      findings.push_back({list_of(target), line_of(tree, target), "wing-direction",
                          target.name + " links " + name + ": " + message});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
