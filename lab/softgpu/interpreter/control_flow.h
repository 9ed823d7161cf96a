// SPDX-License-Identifier: Apache-2.0
/// Handlers of branches, calls, ends, traps, fences and clocks.
#pragma once

#include <optional>

#include "softgpu/interpreter/warp.h"

namespace firebreak::softgpu {

/// The lanes of the guard go to op + jump.
const MicroOp* execute_branch(Warp& warp, const MicroOp* op);
/// brx.idx: operand 1 indexes branch table `jump`; beyond it is an InstructionFetch fault.
const MicroOp* execute_indexed_branch(Warp& warp, const MicroOp* op);
/// Call site `jump` of the function.
const MicroOp* execute_call(Warp& warp, const MicroOp* op);
const MicroOp* execute_indirect_call(Warp& warp, const MicroOp* op);
const MicroOp* execute_return(Warp& warp, const MicroOp* op);
const MicroOp* execute_exit(Warp& warp, const MicroOp* op);
/// trap, brkpt: raises the GpuFaultKind in `detail`.
const MicroOp* execute_trap(Warp& warp, const MicroOp* op);
const MicroOp* execute_nothing(Warp& warp, const MicroOp* op);
/// nanosleep: lets other groups and warps run.
const MicroOp* execute_yield(Warp& warp, const MicroOp* op);
/// membar, fence: orders this thread's accesses for all other host threads.
const MicroOp* execute_fence(Warp& warp, const MicroOp* op);
const MicroOp* execute_active_mask(Warp& warp, const MicroOp* op);

/// Reads a clock or timer into a 32-bit or 64-bit register. Clocks tick once a nanosecond.
struct ClockOperation {
  Execute execute = nullptr;
  std::uint32_t width_bits = 0;
};
ClockOperation select_clock(ptx::SpecialRegister which);

}  // namespace firebreak::softgpu
