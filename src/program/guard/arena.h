// SPDX-License-Identifier: Apache-2.0
/// Where in the guard ranges allocations lie. Pure bookkeeping of addresses; who lays and cuts the guard
/// ranges are elsewhere (program/guard/guard_ranges.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/addresses.h"

namespace firebreak::guard {

/// Pieces of the address space, all of them guard ranges, with holes for allocations. Between two holes, and
/// at both ends of a piece, at least one granule of guard ranges stay, so that who runs past an end meets it.
/// A freed place is used again as late as can be, so that whoever still uses it is noticed.
class Arena {
 public:
  /// What the GPU maps at once: begins and sizes of holes are multiples of it.
  static constexpr std::uint64_t granule_bytes = 2 * mib;

  /// More addresses to give: whole granules, apart from all others.
  void add(os::AddressRange piece);

  /// A hole of `size_bytes` (rounded up to granules); empty: no piece has room.
  std::optional<os::AddressRange> take(std::uint64_t size_bytes);
  /// Gives back the hole that begins there, and says how large it was; empty: none begins there.
  std::optional<os::AddressRange> give(std::uint64_t begin);

  bool owns(std::uint64_t address) const;
  /// Of all pieces, holes not counted.
  std::uint64_t guard_range_bytes() const { return guard_range_bytes_; }

 private:
  std::optional<os::AddressRange> find_between(std::uint64_t low, std::uint64_t high,
                                               std::uint64_t size_bytes) const;

  std::vector<os::AddressRange> pieces_;
  std::map<std::uint64_t, std::uint64_t> holes_;  ///< begin -> end
  std::uint64_t next_ = 0;                        ///< where the last hole ended: the search goes on there
  std::uint64_t guard_range_bytes_ = 0;
};

}  // namespace firebreak::guard
