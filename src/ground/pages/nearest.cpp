// SPDX-License-Identifier: Apache-2.0
#include "ground/pages/nearest.h"

#include <algorithm>
#include <cstddef>

namespace firebreak::pages {
namespace {

constexpr std::size_t longest_word = 64;

/// Three rows of the table of distances are enough: two changed letters look two rows back.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_last(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      const bool is_swap = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > longest_word) return {};
  std::string found;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& each : candidates) {
    if (each.size() > longest_word) continue;
    const std::size_t its = distance(word, each);
    if (its < fewest) {
      fewest = its;
      found = each;
    }
  }
  return found;
}

}  // namespace firebreak::pages
