// SPDX-License-Identifier: Apache-2.0
/// The effects of an instruction on memory: the opcode table's column, for one instruction.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// One access of an instruction.
struct MemoryEffect {
  EffectKind kind = EffectKind::None;
  std::uint32_t operand = no_index;     ///< index into Instruction::operands: the address
  StateSpace space = StateSpace::None;  ///< None: a generic address
};

/// Returns at most two effects: cp.async writes one address and reads another. An opaque instruction has none
/// here: see Function::opaque_instructions. A call has none either: its callee has them. Thread safe.
std::array<MemoryEffect, 2> memory_effects(const Instruction& instruction);

/// How much one thread reads or writes at each address of such an instruction, in bytes.
std::uint32_t access_bytes(const Instruction& instruction);

/// True when operand 0 is a result, by the opcode table; for some instructions only where it is no address.
bool writes_first_operand(const Instruction& instruction);

}  // namespace firebreak::ptx
