// SPDX-License-Identifier: Apache-2.0
#include "ground/os/address_set.h"

#include <algorithm>
#include <iterator>

namespace firebreak::os {

void AddressSet::add(AddressRange range) {
  if (range.begin >= range.end) return;
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second >= range.begin) --next;
  while (next != ranges_.end() && next->first <= range.end) {
    range = {std::min(range.begin, next->first), std::max(range.end, next->second)};
    next = ranges_.erase(next);
  }
  ranges_.emplace(range.begin, range.end);
}

void AddressSet::remove(AddressRange range) {
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second > range.begin) --next;
  while (next != ranges_.end() && next->first < range.end) {
    const auto [begin, end] = *next;
    next = ranges_.erase(next);
    if (begin < range.begin) ranges_.emplace(begin, range.begin);
    if (end > range.end) ranges_.emplace(range.end, end);
  }
}

std::vector<AddressRange> AddressSet::missing_of(AddressRange range) const {
  std::vector<AddressRange> missing;
  std::uint64_t begin = range.begin;
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin()) --next;
  for (; next != ranges_.end() && next->first < range.end; ++next) {
    if (next->first > begin) missing.push_back({begin, next->first});
    begin = std::max(begin, next->second);
  }
  if (begin < range.end) missing.push_back({begin, range.end});
  return missing;
}

std::vector<AddressRange> AddressSet::all() const {
  std::vector<AddressRange> ranges;
  for (const auto& [begin, end] : ranges_) ranges.push_back({begin, end});
  return ranges;
}

}  // namespace firebreak::os
