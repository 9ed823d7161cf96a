// SPDX-License-Identifier: Apache-2.0
/// A thread block: its warps, shared and local memory and barriers. One block runs at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "softgpu/interpreter/interpreter.h"
#include "softgpu/interpreter/warp.h"

namespace firebreak::softgpu {

inline constexpr std::uint32_t barrier_count = 16;
inline constexpr std::uint32_t most_warps = 32;

/// One of a block's numbered barriers. It counts threads; when the instruction names a count, a warp's
/// threads that do not exist or have exited count as arrived with the warp's first ones, as the hardware
/// counts whole warps.
struct Barrier {
  std::uint32_t expected = 0;  ///< threads; 0: all that have not exited
  std::uint32_t arrived = 0;
  std::uint32_t absent = 0;  ///< threads of the warps in `warps` that cannot arrive
  std::uint32_t warps = 0;   ///< one bit a warp that arrived
  std::uint32_t population = 0;
  bool all = true;
  bool any = false;
};

struct Block {
  Block(LaunchState& launch, const Launch& request, std::uint32_t shared_size_bytes);

  /// Puts all threads at the entry, as block (x, y, z) of the grid.
  void start(Dimensions index);
  bool finished() const;
  bool can_run() const;
  /// Lets every warp that can run do so for a while, less if the launch needs attention; false when none
  /// could.
  bool run_slice();
  /// Lets the waiting threads go if all who are expected have arrived.
  void release_if_complete(std::uint32_t barrier);

  LaunchState& launch;
  Dimensions size;
  std::uint32_t thread_count = 0;
  std::vector<std::byte> shared;
  std::unique_ptr<std::byte[], decltype(&std::free)> local;  ///< pages come when touched
  std::array<Barrier, barrier_count> barriers;
  std::vector<std::unique_ptr<Warp>> warps;

 private:
  void make_warp(std::uint32_t index, const Launch& request);
  std::uint32_t live_threads() const;
};

/// These values say what a barrier instruction does, in MicroOp::detail.
enum class BarrierAction : std::int32_t { Sync, Arrive, Population, And, Or };

/// Operand 0: the result of a reduction, 1: which barrier, 2: how many threads (arity 2: it is there), 3:
/// predicate.
const MicroOp* execute_barrier(Warp& warp, const MicroOp* op);

}  // namespace firebreak::softgpu
