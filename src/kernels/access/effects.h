// SPDX-License-Identifier: Apache-2.0
/// What one launch (or a copy, or a fill) may read, may write and certainly writes, as boxes of bytes.
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
  /// Of each box each byte is written, if the launch runs to its end. What cannot be shown is not there.
  std::vector<StridedBox> certain_writes;
  /// What a thread reads may depend on which other threads came before it: atomics, reads of what others
  /// write. Where it then goes does, too.
  bool may_race = false;
  /// Two threads may write one byte, so that its value depends on their order; or the above.
  bool values_may_race = false;
};

OperationEffects find_effects(const KernelSummary& summary, const LaunchArguments& launch,
                              DecisionWorkspace& workspace);

}  // namespace firebreak::access
