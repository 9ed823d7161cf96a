// SPDX-License-Identifier: Apache-2.0
/// This finds the handler of an instruction that works on each lane alone; it is empty when there is none.
#pragma once

#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

/// Integer arithmetic.
Selected select_integer(const ptx::Instruction& instruction);
/// Logic, shifts, bit fields and byte permutation, on bits and predicates.
Selected select_bits(const ptx::Instruction& instruction);
/// f32 and f64 arithmetic.
Selected select_float(const ptx::Instruction& instruction);
/// f16, bf16, f16x2 and bf16x2 arithmetic.
Selected select_half(const ptx::Instruction& instruction);
/// p = a op b, for predicates.
Selected select_predicate_combination(ptx::BoolOp how);
/// p = a cmp b, as setp and set do before they combine it. `half`: of packed types, 0 the low one.
Selected select_comparison(const ptx::Instruction& instruction, ptx::Type type, int half);
/// d = p ? immediate : 0, for set.
Selected select_from_predicate(ptx::Type type);
/// set on packed sources: both halves at once; the comparison is the micro-op's detail.
Selected select_packed_set(ptx::Type source_type);
/// selp, slct, testp.
Selected select_choice(const ptx::Instruction& instruction);
/// cvt and cvt.pack.
Selected select_convert(const ptx::Instruction& instruction);

}  // namespace firebreak::softgpu
