// SPDX-License-Identifier: Apache-2.0
/// Handlers of mov.
#pragma once

#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

/// d = a; width 1: predicates.
Selected select_move(std::uint32_t width_bits);
/// Operand 0 = the parts in operands 1... (`arity` of them), the first one lowest. Null: no such widths.
Execute select_pack(std::uint32_t whole_bits, std::uint32_t part_bits);
/// The parts in operands 1... = operand 0.
Execute select_unpack(std::uint32_t whole_bits, std::uint32_t part_bits);

}  // namespace firebreak::softgpu
