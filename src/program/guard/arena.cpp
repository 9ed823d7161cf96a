// SPDX-License-Identifier: Apache-2.0
#include "program/guard/arena.h"

#include <algorithm>
#include <limits>

namespace firebreak::guard {

void Arena::add(os::AddressRange piece) {
  pieces_.push_back(piece);
  std::sort(pieces_.begin(), pieces_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  guard_range_bytes_ += piece.size_bytes();
}

/// The first place, with a granule of guard ranges on either side, in what is free from an address in [low,
/// high) on.
std::optional<os::AddressRange> Arena::find_between(std::uint64_t low, std::uint64_t high,
                                                    std::uint64_t size_bytes) const {
  const std::uint64_t needed = size_bytes + 2 * granule_bytes;
  for (const os::AddressRange& piece : pieces_) {
    std::uint64_t begin = std::max(piece.begin, low);
    auto next = holes_.upper_bound(begin);
    if (next != holes_.begin() && std::prev(next)->second > begin) begin = std::prev(next)->second;
    while (begin < piece.end && begin < high) {
      const std::uint64_t end = next != holes_.end() ? std::min(next->first, piece.end) : piece.end;
      if (end - begin >= needed) {
        return os::AddressRange{begin + granule_bytes, begin + granule_bytes + size_bytes};
      }
      if (next == holes_.end()) break;
      begin = next->second;
      ++next;
    }
  }
  return {};
}

std::optional<os::AddressRange> Arena::take(std::uint64_t size_bytes) {
  constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  if (size_bytes == 0 || size_bytes > top / 4) return {};
  const std::uint64_t size = round_up(size_bytes, granule_bytes);
  auto hole = find_between(next_, top, size);
  if (!hole) hole = find_between(0, next_, size);
  if (!hole) return {};
  holes_.emplace(hole->begin, hole->end);
  guard_range_bytes_ -= hole->size_bytes();
  next_ = hole->end;
  return hole;
}

std::optional<os::AddressRange> Arena::give(std::uint64_t begin) {
  const auto found = holes_.find(begin);
  if (found == holes_.end()) return {};
  const os::AddressRange hole{found->first, found->second};
  holes_.erase(found);
  guard_range_bytes_ += hole.size_bytes();
  return hole;
}

bool Arena::owns(std::uint64_t address) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [address](const os::AddressRange& piece) {
    return address >= piece.begin && address < piece.end;
  });
}

}  // namespace firebreak::guard
