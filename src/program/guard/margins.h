// SPDX-License-Identifier: Apache-2.0
/// Margins: the free addresses around an allocation that are to be guard ranges, where an index that is off
/// by 32 bits, in either direction, still lands. Pure bookkeeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/address_set.h"
#include "ground/os/addresses.h"

namespace firebreak::guard {

struct MarginSettings {
  /// Reach to both sides of every allocation. A negative index of 32 bits times eight bytes is 16 GiB.
  std::uint64_t reach_bytes = 64 * gib;
  /// Lowest and highest address: no higher than what a process can map.
  std::uint64_t lowest = 4 * gib;
  std::uint64_t highest = (std::uint64_t{1} << 47) - 4096;
  /// Largest sum.
  std::uint64_t bytes_max = 1024 * gib;
  /// Largest number of ranges; the largest come first.
  std::size_t ranges_max = 256;
};

class Margins {
 public:
  explicit Margins(MarginSettings settings) : settings_(settings) {}

  /// True when all that `around` reaches has been looked at before.
  bool knows(os::AddressRange around) const;
  /// Plans what is to be laid around an allocation: whole 2 MiB between what is `taken`. Afterwards it is
  /// known.
  std::vector<os::AddressRange> plan(os::AddressRange around, std::span<const os::AddressRange> taken,
                                     std::uint64_t room_bytes);
  /// Notes that it was laid; what was planned and is not laid is forgotten.
  void laid(os::AddressRange margin);
  /// Takes out what lies in the way of somebody who wants exactly these addresses; it is no margin any more.
  std::vector<os::AddressRange> give_way(os::AddressRange wanted);

  std::uint64_t bytes() const { return bytes_; }
  const std::vector<os::AddressRange>& all() const { return margins_; }

 private:
  os::AddressRange window(os::AddressRange around) const;

  MarginSettings settings_;
  os::AddressSet known_;
  std::vector<os::AddressRange> margins_;
  std::uint64_t bytes_ = 0;
};

}  // namespace firebreak::guard
