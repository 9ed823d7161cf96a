// SPDX-License-Identifier: Apache-2.0
#include "guard/reach.h"

#include <algorithm>
#include <iterator>

namespace firebreak::guard {

void AddressSet::add(os::AddressRange range) {
  if (range.begin >= range.end) return;
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second >= range.begin) --next;
  while (next != ranges_.end() && next->first <= range.end) {
    range = {std::min(range.begin, next->first), std::max(range.end, next->second)};
    next = ranges_.erase(next);
  }
  ranges_.emplace(range.begin, range.end);
}

void AddressSet::remove(os::AddressRange range) {
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second > range.begin) --next;
  while (next != ranges_.end() && next->first < range.end) {
    const auto [begin, end] = *next;
    next = ranges_.erase(next);
    if (begin < range.begin) ranges_.emplace(begin, range.begin);
    if (end > range.end) ranges_.emplace(range.end, end);
  }
}

std::vector<os::AddressRange> AddressSet::missing_of(os::AddressRange range) const {
  std::vector<os::AddressRange> missing;
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

void Reach::note(os::AddressRange range, const CUmemAccessDesc& rights) {
  AddressSet& reached = places_[{static_cast<int>(rights.location.type), rights.location.id}];
  if (rights.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    reached.remove(range);
  } else {
    reached.add(range);
  }
}

void Reach::forget(os::AddressRange range) {
  for (auto& [place, reached] : places_) reached.remove(range);
}

std::vector<os::AddressRange> Reach::unreached_of(os::AddressRange range) const {
  std::vector<os::AddressRange> unreached{range};
  for (const auto& [place, reached] : places_) {
    std::vector<os::AddressRange> left;
    for (const os::AddressRange& part : unreached) {
      const auto missing = reached.missing_of(part);
      left.insert(left.end(), missing.begin(), missing.end());
    }
    unreached = std::move(left);
  }
  return unreached;
}

}  // namespace firebreak::guard
