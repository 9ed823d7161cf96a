// SPDX-License-Identifier: Apache-2.0
/// The effects of one launch (or a copy, or a fill): what it may read, may write and certainly writes, as
/// boxes of bytes.
#pragma once

#include <vector>

#include "kernels/access/decision.h"

namespace firebreak::access {

/// Canonical addresses.
struct OperationEffects {
  Decision decision;  ///< Unknown: why nothing is known, and all below says nothing. Else: Idempotent
  /// Atomics are in both. A thread's read of what it has certainly written itself is left out.
  std::vector<DecisionWorkspace::PlacedBox> reads;
  std::vector<DecisionWorkspace::PlacedBox> writes;
  /// Boxes of which each byte is written, if the launch runs to its end. A write that cannot be shown is not
  /// there.
  std::vector<StridedBox> certain_writes;
  /// True when what a thread reads may depend on which other threads came before it: atomics, reads of what
  /// others write. Where it then goes does, too.
  bool may_race = false;
  /// Two threads may write one byte, so that its value depends on their order; or the above.
  bool values_may_race = false;
};

OperationEffects find_effects(const KernelSummary& summary, const LaunchArguments& launch,
                              DecisionWorkspace& workspace);

}  // namespace firebreak::access
