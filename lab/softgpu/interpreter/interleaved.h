// SPDX-License-Identifier: Apache-2.0
/// A launch whose blocks, warps and threads take turns, in an order that a seed gives.
#pragma once

#include <cstdint>

#include "softgpu/interpreter/block.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu {

/// The order, drawn as it is needed. For one run.
class Turns {
 public:
  explicit Turns(std::uint64_t seed);

  /// 0 to bound - 1.
  std::uint32_t below(std::uint32_t bound);
  /// Instructions that a warp runs before somebody else's turn.
  std::uint32_t quantum();
  /// The lanes that go first: mostly all of them; none only of none.
  LaneMask some_of(LaneMask mask);

 private:
  std::uint64_t next();

  std::uint64_t state_;
  std::uint32_t longest_log2_;  ///< turns of this run
  bool splits_warps_;
};

/// A block of the grid.
Dimensions block_at(Dimensions grid, std::uint64_t place);

/// This is as run_launch, and `launch.interleaving` is there.
LaunchOutcome run_interleaved(const Launch& launch, std::uint32_t shared_bytes, LaunchState& state,
                              ExecutionControl& control);

}  // namespace firebreak::softgpu
