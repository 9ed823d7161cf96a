// SPDX-License-Identifier: Apache-2.0
#include "inject/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

std::vector<const Kind*> all_kinds() {
  std::vector<const Kind*> kinds;
  for (const auto of_a_class :
       {mmu_kinds(), engine_kinds(), sm_kinds(), termination_kinds(), device_kinds()}) {
    for (const Kind& kind : of_a_class) kinds.push_back(&kind);
  }
  return kinds;
}

/// Levenshtein's: how many characters to insert, remove or change to get from one to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::span<const Kind* const> catalogue() {
  static const std::vector<const Kind*> kinds = all_kinds();
  return kinds;
}

std::string current_name(const std::string& name, bool contained) {
  for (const char* former :
       {"unmapped-store", "unmapped-load", "unmapped-atomic", "unmapped-reduction", "unmapped-prefetch"}) {
    if (name != former) continue;
    // One of those at the low address has stayed a kind.
    return name + (contained && name == "unmapped-store" ? "-low" : contained ? "" : "-far");
  }
  return name;
}

const Kind* find(std::string_view wanted) {
  const std::string name = current_name(std::string(wanted), false);
  const auto kinds = catalogue();
  const auto found = std::ranges::find(kinds, name, [](const Kind* kind) { return kind->name; });
  return found == kinds.end() ? nullptr : *found;
}

const Kind* closest(std::string_view name) {
  const auto distance = [name](const Kind* kind) { return edit_distance(name, kind->name); };
  const Kind* best = *std::ranges::min_element(catalogue(), {}, distance);
  // A name of which more than a third is wrong is no slip of the hand.
  return distance(best) * 3 <= best->name.size() ? best : nullptr;
}

}  // namespace firebreak::inject
