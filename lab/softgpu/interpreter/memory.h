// SPDX-License-Identifier: Apache-2.0
/// Handlers of ld, st, cp.async and address conversions.
#pragma once

#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/memory_access.h"

namespace firebreak::softgpu {

/// Moves elements of `type` between memory and registers of that many bits, at least as wide. Null: there is
/// none.
Transfer select_load(ptx::Type type, std::uint32_t register_bits);
Transfer select_store(ptx::Type type, std::uint32_t register_bits);

/// cp.async: shared (operand 4) from global (operand 5, offset in operand 6 as a constant); operand 7, where
/// `detail` is 1, says how many bytes are copied, the rest is zero.
const MicroOp* execute_copy_async(Warp& warp, const MicroOp* op);

/// cvta: adds the immediate. isspacep: the window in the immediate; 0: global.
Selected select_convert_address();
Selected select_is_in_space();
/// d = immediate, plus the frame's part of local memory; 64 or 32 bits.
Selected select_local_address(std::uint32_t register_bits);

}  // namespace firebreak::softgpu
