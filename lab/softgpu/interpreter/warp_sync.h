// SPDX-License-Identifier: Apache-2.0
/// Instructions that the lanes of a warp execute together: shfl, vote, match, redux, elect, bar.warp,
/// activemask.
///
/// A lane brings its values and the membermask it names; it goes on when every member that has not exited is
/// there, wherever in the program those members wait.
#pragma once

#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

/// Serves the waiting lanes whose members have all arrived; false when there are none.
bool release_sync(Warp& warp);

/// The handler, and the widths of the operands it wants: 0 destination, 1 second destination (a predicate), 2
/// value, 3 shfl's lane, 4 shfl's clamp, 5 membermask. A width of 0: not used.
struct SyncOperation {
  Execute execute = nullptr;
  std::array<std::uint8_t, 6> widths{};
};
SyncOperation select_sync(const ptx::Instruction& instruction);
/// MicroOp::detail of the operation; `second`: the second destination is wanted.
std::int32_t sync_detail(const ptx::Instruction& instruction, const SyncOperation& operation, bool second);

}  // namespace firebreak::softgpu
