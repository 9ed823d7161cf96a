// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/address_ranges.h"

#include <iterator>

#include "base/units.h"

namespace firebreak::softgpu::driver {

bool AddressRanges::is_free(std::uint64_t begin, std::uint64_t size_bytes) const {
  const auto after = taken_.lower_bound(begin);
  if (after != taken_.end() && after->first < begin + size_bytes) return false;
  if (after == taken_.begin()) return true;
  const auto before = std::prev(after);
  return before->first + before->second <= begin;
}

std::optional<AddressRange> AddressRanges::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                                std::uint64_t hint) {
  const std::lock_guard lock(mutex_);
  const bool hint_usable = hint >= lowest && size_bytes <= highest && hint <= highest - size_bytes;
  if (hint_usable && hint % alignment_bytes == 0 && is_free(hint, size_bytes)) {
    taken_.emplace(hint, size_bytes);
    return AddressRange{hint, size_bytes};
  }
  if (size_bytes > arena_end - arena_begin) return std::nullopt;
  std::uint64_t begin = round_up(arena_begin, alignment_bytes);
  auto next = taken_.lower_bound(arena_begin);
  if (next != taken_.begin()) --next;  // may reach into the arena from below
  for (; next != taken_.end(); ++next) {
    if (next->first + next->second <= begin) continue;
    if (begin + size_bytes <= next->first) break;
    begin = round_up(next->first + next->second, alignment_bytes);
  }
  if (begin > arena_end - size_bytes) return std::nullopt;
  taken_.emplace(begin, size_bytes);
  return AddressRange{begin, size_bytes};
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
