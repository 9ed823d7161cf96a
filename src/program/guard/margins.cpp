// SPDX-License-Identifier: Apache-2.0
#include "program/guard/margins.h"

#include <algorithm>

namespace firebreak::guard {
namespace {

/// Piece that the GPU maps at once: no margin shares any with a neighbour.
constexpr std::uint64_t granule_bytes = 2 * mib;
/// Windows begin and end with multiples of it, so that the next allocation's is seldom a new one.
constexpr std::uint64_t window_bytes = 16 * gib;

std::uint64_t round_down(std::uint64_t value, std::uint64_t step) { return value / step * step; }

}  // namespace

os::AddressRange Margins::window(os::AddressRange around) const {
  const std::uint64_t reach = settings_.reach_bytes;
  const std::uint64_t begin = around.begin > reach ? round_down(around.begin - reach, window_bytes) : 0;
  const std::uint64_t end = round_up(std::min(around.end, settings_.highest) + reach, window_bytes);
  return {std::max(begin, settings_.lowest), std::min(end, settings_.highest)};
}

bool Margins::knows(os::AddressRange around) const {
  const os::AddressRange reached = window(around);
  return settings_.reach_bytes == 0 || reached.begin >= reached.end || known_.missing_of(reached).empty();
}

std::vector<os::AddressRange> Margins::plan(os::AddressRange around, std::span<const os::AddressRange> taken,
                                            std::uint64_t room_bytes) {
  os::AddressSet occupied;
  for (const os::AddressRange& range : taken) occupied.add(range);
  std::vector<os::AddressRange> gaps;
  const os::AddressRange reached = window(around);
  if (settings_.reach_bytes == 0 || reached.begin >= reached.end) return gaps;
  for (const os::AddressRange& fresh : known_.missing_of(reached)) {
    for (const os::AddressRange& gap : occupied.missing_of(fresh)) {
      const os::AddressRange whole{round_up(gap.begin, granule_bytes), round_down(gap.end, granule_bytes)};
      if (whole.begin < whole.end) gaps.push_back(whole);
    }
  }
  known_.add(reached);
  std::ranges::stable_sort(gaps, std::greater(), &os::AddressRange::size_bytes);
  std::uint64_t room = std::min(room_bytes, settings_.bytes_max - std::min(bytes_, settings_.bytes_max));
  const std::size_t ranges =
      settings_.ranges_max - std::min<std::size_t>(margins_.size(), settings_.ranges_max);
  std::vector<os::AddressRange> planned;
  for (const os::AddressRange& gap : gaps) {
    if (gap.size_bytes() > room || planned.size() == ranges) continue;
    room -= gap.size_bytes();
    planned.push_back(gap);
  }
  return planned;
}

void Margins::laid(os::AddressRange margin) {
  margins_.push_back(margin);
  bytes_ += margin.size_bytes();
}

std::vector<os::AddressRange> Margins::give_way(os::AddressRange wanted) {
  std::vector<os::AddressRange> ways;
  std::vector<os::AddressRange> left;
  for (const os::AddressRange& margin : margins_) {
    const os::AddressRange way{std::max(margin.begin, wanted.begin), std::min(margin.end, wanted.end)};
    if (way.begin >= way.end) {
      left.push_back(margin);
      continue;
    }
    ways.push_back(way);
    bytes_ -= way.size_bytes();
    if (margin.begin < way.begin) left.push_back({margin.begin, way.begin});
    if (way.end < margin.end) left.push_back({way.end, margin.end});
  }
  margins_ = std::move(left);
  return ways;
}

}  // namespace firebreak::guard
