// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/memory_effect.h"

#include <algorithm>

#include "kernels/ptx/opcode_table.h"

namespace firebreak::ptx {
namespace {

bool is_address(OperandKind kind) {
  return kind == OperandKind::RegisterAddress || kind == OperandKind::SymbolAddress ||
         kind == OperandKind::AbsoluteAddress;
}

// The n-th operand that is an address; no_index where there are fewer.
std::uint32_t find_address(const Instruction& instruction, std::uint32_t n) {
  for (std::uint32_t i = 0; i < instruction.operands.size(); ++i)
    if (is_address(instruction.operands[i].kind) && n-- == 0) return i;
  return no_index;
}

// Returns the space that an instruction works on which names none.
StateSpace default_space(Opcode opcode) {
  switch (opcode) {
    case Opcode::Ldu:
      return StateSpace::Global;
    case Opcode::Ldmatrix:
    case Opcode::Stmatrix:
      return StateSpace::Shared;
    default:
      return StateSpace::None;
  }
}

}  // namespace

std::array<MemoryEffect, 2> memory_effects(const Instruction& instruction) {
  std::array<MemoryEffect, 2> effects;
  const auto variants = variants_of(instruction.opcode);
  if (variants.empty()) return effects;
  for (std::uint32_t n = 0; n < effects.size(); ++n) {
    effects[n].kind = variants.front().effects[n];
    if (effects[n].kind == EffectKind::None) continue;
    effects[n].operand = find_address(instruction, n);
    const StateSpace named = n == 0 ? instruction.modifiers.space : instruction.modifiers.source_space;
    effects[n].space = named == StateSpace::None ? default_space(instruction.opcode) : named;
  }
  return effects;
}

std::uint32_t access_bytes(const Instruction& instruction) {
  constexpr std::uint32_t discarded_bytes = 128;
  if (instruction.opcode == Opcode::CpAsync && instruction.operands.size() > 2)
    return static_cast<std::uint32_t>(instruction.operands[2].bits);
  if (instruction.opcode == Opcode::Discard) return discarded_bytes;
  const std::uint32_t element = std::max(size_bytes(instruction.type), 1U);
  const std::uint32_t matrix = instruction.modifiers.matrix_count != 0 ? 16U : 1U;
  return element * instruction.modifiers.vector_arity * matrix;
}

bool writes_first_operand(const Instruction& instruction) {
  const auto variants = variants_of(instruction.opcode);
  return !variants.empty() && variants.front().operands.starts_with('=');
}

}  // namespace firebreak::ptx
