// SPDX-License-Identifier: Apache-2.0
#include "kernels/regions/byte_ranges.h"

#include <algorithm>

namespace firebreak::regions {

std::size_t ByteRanges::first_ending_after(std::uint64_t address) const {
  const auto found =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const ByteRange& range) { return value < range.end; });
  return static_cast<std::size_t>(found - ranges_.begin());
}

void ByteRanges::add(ByteRange range) {
  if (range.begin >= range.end) return;
  // Ranges that touch it become one with it.
  std::size_t first = first_ending_after(range.begin);
  if (first < ranges_.size() && ranges_[first].begin <= range.begin && range.end <= ranges_[first].end)
    return;
  if (first > 0 && ranges_[first - 1].end == range.begin) --first;
  std::size_t last = first;
  while (last < ranges_.size() && ranges_[last].begin <= range.end) {
    range.begin = std::min(range.begin, ranges_[last].begin);
    range.end = std::max(range.end, ranges_[last].end);
    ++last;
  }
  const auto at = ranges_.begin() + static_cast<std::ptrdiff_t>(first);
  ranges_.insert(ranges_.erase(at, ranges_.begin() + static_cast<std::ptrdiff_t>(last)), range);
}

void ByteRanges::add(const ByteRanges& others) {
  for (const ByteRange& range : others.ranges_) add(range);
}

void ByteRanges::remove(const ByteRanges& others) {
  ByteRanges left;
  for (const ByteRange& range : ranges_) left.add(others.missing_of(range));
  ranges_ = std::move(left.ranges_);
}

std::uint64_t ByteRanges::size_bytes() const {
  std::uint64_t sum = 0;
  for (const ByteRange& range : ranges_) sum += range.end - range.begin;
  return sum;
}

bool ByteRanges::meets(ByteRange range) const {
  const std::size_t first = first_ending_after(range.begin);
  return range.begin < range.end && first < ranges_.size() && ranges_[first].begin < range.end;
}

ByteRanges ByteRanges::missing_of(ByteRange range) const {
  ByteRanges missing;
  for (std::size_t i = first_ending_after(range.begin); i < ranges_.size(); ++i) {
    if (ranges_[i].begin >= range.end) break;
    missing.add({range.begin, std::min(range.end, ranges_[i].begin)});
    range.begin = std::min(range.end, ranges_[i].end);
  }
  missing.add(range);
  return missing;
}

ByteRanges ByteRanges::common_with(ByteRange range) const {
  ByteRanges common;
  for (std::size_t i = first_ending_after(range.begin); i < ranges_.size(); ++i) {
    if (ranges_[i].begin >= range.end) break;
    common.add({std::max(range.begin, ranges_[i].begin), std::min(range.end, ranges_[i].end)});
  }
  return common;
}

}  // namespace firebreak::regions
