// SPDX-License-Identifier: Apache-2.0
/// The addresses of one process under guard: which of them are guard ranges, which are given to allocations,
/// and how they change hands.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "program/cuda/driver.h"
#include "program/guard/arena.h"
#include "program/guard/guard_ranges.h"
#include "program/guard/ledger.h"
#include "program/guard/margins.h"

namespace firebreak::guard {

struct GuardedAddressSpaceSettings {
  /// Addresses without anything behind them, in sum.
  std::uint64_t guard_range_bytes_max = 512 * gib;
  /// Size of a piece around allocations, at first and whenever they have used up what there is.
  std::uint64_t piece_bytes = 8 * gib;
  /// Size of the part behind each of these, guarded as well and given to nobody: where what lies around is
  /// not there to be guarded.
  std::uint64_t tail_bytes = 0;
  /// End of the guarded part from the lowest address that the kernel allows: null plus an offset and
  /// truncated pointers land there.
  std::uint64_t low_end = 4 * gib;
  /// Around all that, and around what the driver has placed itself.
  MarginSettings margins = {};
  FindDescriptors find_descriptors = nullptr;
};

/// Thread safe.
class GuardedAddressSpace {
 public:
  GuardedAddressSpace(const cuda::Driver& driver, GuardRanges guard_ranges, Ledger& ledger,
                      GuardedAddressSpaceSettings settings)
      : driver_(driver),
        guard_ranges_(std::move(guard_ranges)),
        ledger_(ledger),
        settings_(settings),
        margins_(settings.margins) {}

  /// Lays the first piece and the low addresses. Fails where not even the piece can be had; what else could
  /// not be covered stands in `remark`.
  Status start();
  const std::string& remark() const { return remark_; }

  /// Addresses for an allocation, reserved with the driver and still guarded; empty: there are none left.
  std::optional<os::AddressRange> take(std::uint64_t size_bytes);
  /// Gives back what take() gave, guarded again by then.
  void give(std::uint64_t begin);

  /// Guards a reservation that is the caller's. False: it stays as it is, for lack of room or of rights.
  bool adopt(os::AddressRange reservation);
  /// The driver has it back.
  void release(os::AddressRange reservation);

  /// Guards what is free around an allocation that is not ours.
  void surround(os::AddressRange allocation);
  /// The program wants to reserve exactly these addresses: what was only around others is not in its way.
  /// Answers what that was, for come_back().
  std::vector<os::AddressRange> give_way(os::AddressRange wanted);
  /// Takes back what could not be had.
  void come_back(const std::vector<os::AddressRange>& margins);

  /// The process works in another of its address spaces from now on, and nothing asks the driver meanwhile.
  Status follow() { return guard_ranges_.follow(); }
  /// It works in none until then.
  void leave() { guard_ranges_.leave(); }

  /// The GPU is about to reach part of a taken or adopted range, or no longer does.
  Status open(os::AddressRange part);
  Status close(os::AddressRange part);

 private:
  Status add_piece(std::uint64_t size_bytes);
  /// Returns where a reservation has most room around it; 0: anywhere.
  CUdeviceptr find_room(std::uint64_t size_bytes) const;
  void lay_margins(os::AddressRange around);
  void lay_margin(os::AddressRange margin);
  void cover_low_addresses();
  std::uint64_t guard_range_bytes() const { return arena_.guard_range_bytes() + elsewhere_bytes_; }
  std::uint64_t all_bytes() const { return guard_range_bytes() + margins_.bytes(); }
  void tell(os::AddressRange covered);

  const cuda::Driver& driver_;
  GuardRanges guard_ranges_;
  Ledger& ledger_;
  GuardedAddressSpaceSettings settings_;
  mutable std::mutex mutex_;
  Arena arena_;
  std::uint64_t elsewhere_bytes_ = 0;  ///< guard ranges that is neither the arena's nor a margin
  Margins margins_;
  std::string remark_;
};

}  // namespace firebreak::guard
