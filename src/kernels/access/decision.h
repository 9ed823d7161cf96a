// SPDX-License-Identifier: Apache-2.0
/// May this launch run again after it was torn? Decided from a kernel's summary and one launch's arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/access/evaluate.h"
#include "kernels/access/launch.h"
#include "kernels/access/overlap.h"
#include "kernels/access/summary.h"

namespace firebreak::access {

enum class Verdict : std::uint8_t {
  Idempotent,     ///< the launch writes no byte that may have been read before, and does no atomics
  NotIdempotent,  ///< the launch does, as far as its addresses are known
  Unknown,
};

enum class DecisionReason : std::uint8_t {
  None,
  Refused,          ///< KernelSummary::refusal
  ShortParameters,  ///< fewer parameter bytes than the kernel has
  Atomic,           ///< `first`
  Overlap,          ///< `first` writes what `second` may have read
  WideOverlap,      ///< the same, but one of them is known only as "somewhere in that allocation"
  UnknownAddress,   ///< nothing is known of where `first` goes
  OutsideMemory,    ///< `first` goes where the process has no memory
  AliasedMemory,    ///< `first` may go to several allocations, some of which are the same memory
  TooComplicated,   ///< the address of `first` is, or all that was to be compared before it
  ByOrder,          ///< the place where `first` writes may depend on the order of threads: a torn run's words
                    ///< may stay
  OwnMemory,        ///< an address in shared or local memory is made of a pointer to elsewhere
  Constants,        ///< `first` may write constant memory, whose place is not known
};

/// The index that stands, in the place of one into KernelSummary::groups, for all that is read in constant
/// memory.
inline constexpr std::uint32_t constant_group = ptx::no_index;

struct Decision {
  Verdict verdict = Verdict::Unknown;
  DecisionReason reason = DecisionReason::None;
  std::uint32_t first = 0;   ///< index into KernelSummary::groups
  std::uint32_t second = 0;  ///< index into KernelSummary::groups, or constant_group
};

/// The room that decisions need besides their arguments; reused, so that a decision does not allocate. For
/// one thread at a time.
class DecisionWorkspace {
 public:
  DecisionWorkspace();

  struct PlacedBox {
    StridedBox box;
    std::uint32_t group = 0;
    Wide begin = 0;  ///< bounds of the box
    Wide end = 0;
    bool is_wide = false;   ///< the box is all of an allocation, because the offset is not known
    bool is_fixed = false;  ///< data do not change which of the bytes a write goes to
  };
  StepValues values;
  StepValues exact_values;
  std::vector<PlacedBox> reads;
  std::vector<PlacedBox> writes;
};

/// Idempotent is a proof, under one assumption: arithmetic on a pointer stays inside its allocation where the
/// offset is data. Its cost is bounded, in steps; beyond that: Unknown, TooComplicated. The assumption is not
/// made where the pointer lies at the edge of two allocations, or where something else that points to memory
/// goes into the address. `launch.memory` must name all memory that the kernel may reach, but for its
/// constant memory; where that is among it, `launch.variable_addresses` must say where it lies.
Decision decide(const KernelSummary& summary, const LaunchArguments& launch, DecisionWorkspace& workspace);

/// The place where one access of a launch may go; for checks against what it did. Empty where it does not
/// happen.
struct PredictedAccess {
  bool happens = false;
  bool is_known = false;  ///< false: anywhere
  bool is_wide = false;   ///< anywhere in the box
  StridedBox box;         ///< addresses as the launch has them, not canonical ones
};
PredictedAccess predict(const KernelSummary& summary, std::size_t group, const LaunchArguments& launch,
                        DecisionWorkspace& workspace);
/// True when the access may touch [address, address + size).
bool allows(const PredictedAccess& predicted, std::uint64_t address, std::uint64_t size_bytes);

}  // namespace firebreak::access
