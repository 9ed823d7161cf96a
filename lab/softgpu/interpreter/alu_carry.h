// SPDX-License-Identifier: Apache-2.0
/// add.cc, addc, sub.cc, subc, mad.cc, madc.
#pragma once

#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

/// Operand of these micro-ops that holds the carry flag, a predicate of the frame.
inline constexpr std::size_t carry_operand = 5;

/// The handler serves instructions that read the carry flag or (.cc) write it; it is empty for others.
Selected select_carry(const ptx::Instruction& instruction);

}  // namespace firebreak::softgpu
