// SPDX-License-Identifier: Apache-2.0
#include "guard/arena.h"

#include <algorithm>
#include <limits>

namespace firebreak::guard {

void Arena::add(os::AddressRange piece) {
  pieces_.push_back(piece);
  std::sort(pieces_.begin(), pieces_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  blanket_bytes_ += piece.size_bytes();
}

/// Where in `room`, whose edges belong to holes or to nobody, a hole fits with a granule on either side.
std::optional<std::uint64_t> Arena::fit(os::AddressRange room, std::uint64_t size_bytes,
                                        std::uint64_t alignment_bytes) const {
  const std::uint64_t begin = round_up(room.begin + granule_bytes, alignment_bytes);
  if (begin >= room.end || room.end - begin < size_bytes + granule_bytes) return {};
  return begin;
}

/// The first place in a room that begins in [low, high) and has no hole in it.
std::optional<os::AddressRange> Arena::find_between(std::uint64_t low, std::uint64_t high,
                                                    std::uint64_t size_bytes,
                                                    std::uint64_t alignment_bytes) const {
  for (const os::AddressRange& piece : pieces_) {
    std::uint64_t begin = std::max(piece.begin, low);
    auto next = holes_.upper_bound(begin);
    if (next != holes_.begin() && std::prev(next)->second > begin) begin = std::prev(next)->second;
    while (begin < piece.end && begin < high) {
      const std::uint64_t end = next != holes_.end() ? std::min(next->first, piece.end) : piece.end;
      if (const auto address = fit({begin, end}, size_bytes, alignment_bytes)) {
        return os::AddressRange{*address, *address + size_bytes};
      }
      if (next == holes_.end()) break;
      begin = next->second;
      ++next;
    }
  }
  return {};
}

void Arena::punch(os::AddressRange hole) {
  holes_.emplace(hole.begin, hole.end);
  blanket_bytes_ -= hole.size_bytes();
}

std::optional<os::AddressRange> Arena::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
  constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  if (size_bytes == 0 || size_bytes > top / 4 || alignment_bytes > top / 4) return {};
  const std::uint64_t size = round_up(size_bytes, granule_bytes);
  const std::uint64_t alignment = std::max(alignment_bytes, granule_bytes);
  auto hole = find_between(next_, top, size, alignment);
  if (!hole) hole = find_between(0, next_, size, alignment);
  if (!hole) return {};
  punch(*hole);
  next_ = hole->end;
  return hole;
}

bool Arena::take_at(os::AddressRange hole) {
  if (hole.end <= hole.begin || hole.begin % granule_bytes != 0 || hole.end % granule_bytes != 0)
    return false;
  const bool inside = std::any_of(pieces_.begin(), pieces_.end(), [&](const os::AddressRange& piece) {
    return hole.begin >= piece.begin && hole.end <= piece.end;
  });
  if (!inside) return false;
  const auto next = holes_.lower_bound(hole.begin);
  if (next != holes_.end() && next->first < hole.end) return false;
  if (next != holes_.begin() && std::prev(next)->second > hole.begin) return false;
  punch(hole);
  return true;
}

std::optional<os::AddressRange> Arena::give(std::uint64_t begin) {
  const auto found = holes_.find(begin);
  if (found == holes_.end()) return {};
  const os::AddressRange hole{found->first, found->second};
  holes_.erase(found);
  blanket_bytes_ += hole.size_bytes();
  return hole;
}

std::optional<os::AddressRange> Arena::hole_at(std::uint64_t address) const {
  const auto next = holes_.upper_bound(address);
  if (next == holes_.begin()) return {};
  const os::AddressRange hole{std::prev(next)->first, std::prev(next)->second};
  if (address >= hole.end) return {};
  return hole;
}

bool Arena::owns(std::uint64_t address) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [address](const os::AddressRange& piece) {
    return address >= piece.begin && address < piece.end;
  });
}

}  // namespace firebreak::guard
