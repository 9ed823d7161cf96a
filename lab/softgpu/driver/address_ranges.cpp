// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/address_ranges.h"

#include <iterator>

#include "ground/base/units.h"

namespace firebreak::softgpu::driver {

std::optional<std::uint64_t> AddressRanges::obstacle_end(const AddressRange& range,
                                                         const FindObstacle& others) const {
  const auto after = taken_.lower_bound(range.end());
  if (after != taken_.begin()) {
    const auto [begin, size_bytes] = *std::prev(after);
    if (begin + size_bytes > range.begin) return begin + size_bytes;
  }
  return others ? others(range) : std::nullopt;
}

std::optional<AddressRange> AddressRanges::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                                std::uint64_t hint, const FindObstacle& others) {
  const std::lock_guard lock(mutex_);
  const bool hint_usable = hint >= lowest && size_bytes <= highest && hint <= highest - size_bytes;
  if (hint_usable && hint % alignment_bytes == 0 && !obstacle_end({hint, size_bytes}, others)) {
    taken_.emplace(hint, size_bytes);
    return AddressRange{hint, size_bytes};
  }
  if (size_bytes > arena_end - arena_begin) return std::nullopt;
  std::uint64_t begin = round_up(arena_begin, alignment_bytes);
  while (begin <= arena_end - size_bytes) {
    const auto obstacle = obstacle_end({begin, size_bytes}, others);
    if (!obstacle) {
      taken_.emplace(begin, size_bytes);
      return AddressRange{begin, size_bytes};
    }
    begin = round_up(*obstacle, alignment_bytes);
  }
  return std::nullopt;
}

bool AddressRanges::give(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(begin);
  if (found == taken_.end() || found->second != size_bytes) return false;
  taken_.erase(found);
  return true;
}

std::optional<AddressRange> AddressRanges::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto after = taken_.upper_bound(address);
  if (after == taken_.begin()) return std::nullopt;
  const auto [begin, size_bytes] = *std::prev(after);
  if (address - begin >= size_bytes) return std::nullopt;
  return AddressRange{begin, size_bytes};
}

}  // namespace firebreak::softgpu::driver
