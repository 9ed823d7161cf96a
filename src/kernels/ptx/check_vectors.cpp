// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

constexpr std::uint32_t threads_per_warp = 32;

// Rows, columns and depth of a product of matrices.
struct Extent {
  MatrixShape shape;
  std::uint32_t m, n, k;
};
constexpr std::array extents{
    Extent{MatrixShape::M8n8k4, 8, 8, 4},     Extent{MatrixShape::M16n8k4, 16, 8, 4},
    Extent{MatrixShape::M16n8k8, 16, 8, 8},   Extent{MatrixShape::M16n8k16, 16, 8, 16},
    Extent{MatrixShape::M16n8k32, 16, 8, 32},
};

Finding wrong(const Instruction& instruction, const Operand& operand, std::uint64_t expected) {
  return complain(operand.location,
                  short_name(instruction) + " takes " +
                      (expected == 1 ? "one value here, not a vector"
                                     : "a vector of " + std::to_string(expected) + " here"));
}

bool has_elements(const Operand& operand, std::uint64_t count) {
  return count == 1 ? operand.kind != OperandKind::Vector || operand.elements.size() == 1
                    : operand.kind == OperandKind::Vector && operand.elements.size() == count;
}

Finding check_memory(const Module& module, const Instruction& instruction) {
  const std::uint32_t arity = instruction.modifiers.vector_arity;
  const std::uint32_t bytes = arity * size_bytes(instruction.type);
  const bool wide_allowed = module.target_sm >= 100 && instruction.modifiers.space == StateSpace::Global;
  if (arity > 1 && bytes > (wide_allowed ? 32U : 16U))
    return complain(instruction.location,
                    short_name(instruction) + " moves " + std::to_string(bytes) + " bytes at once, too many");
  const bool writes_first = instruction.opcode == Opcode::Ld || instruction.opcode == Opcode::Ldu ||
                            instruction.opcode == Opcode::Atom;
  if (writes_first && instruction.operands[0].kind != OperandKind::Sink &&
      !has_elements(instruction.operands[0], arity))
    return wrong(instruction, instruction.operands[0], arity);
  const std::size_t source = instruction.opcode == Opcode::Atom ? 2 : 1;
  const bool reads = instruction.opcode == Opcode::Atom || !writes_first;
  if (reads && !has_elements(instruction.operands[source], arity))
    return wrong(instruction, instruction.operands[source], arity);
  return std::nullopt;
}

// Fragments are spread evenly over the warp and packed into registers of 32 bits (64 for f64).
std::uint32_t registers_per_thread(Type type, std::uint32_t values) {
  const std::uint32_t bytes = size_bytes(type);
  return bytes >= 4 ? values / threads_per_warp : values * bytes / threads_per_warp / 4;
}

Finding check_mma(const Instruction& instruction) {
  const bool quad_pairs =
      instruction.modifiers.matrix_shape == MatrixShape::M8n8k4 && instruction.source_type == Type::F16;
  if (quad_pairs) return std::nullopt;
  for (const Extent& extent : extents) {
    if (extent.shape != instruction.modifiers.matrix_shape) continue;
    const std::array counts{registers_per_thread(instruction.type, extent.m * extent.n),
                            registers_per_thread(instruction.source_type, extent.m * extent.k),
                            registers_per_thread(instruction.more_types[0], extent.k * extent.n),
                            registers_per_thread(instruction.more_types[1], extent.m * extent.n)};
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] == 0 || !has_elements(instruction.operands[i], counts[i]))
        return wrong(instruction, instruction.operands[i], counts[i]);
  }
  return std::nullopt;
}

Finding check_instruction(const Module& module, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::Ld:
    case Opcode::Ldu:
    case Opcode::St:
    case Opcode::Atom:
    case Opcode::Red:
      return check_memory(module, instruction);
    case Opcode::Mma:
      return check_mma(instruction);
    case Opcode::Ldmatrix:
    case Opcode::Stmatrix: {
      const Operand& vector = instruction.operands[instruction.opcode == Opcode::Ldmatrix ? 0 : 1];
      const std::uint32_t count = instruction.modifiers.matrix_count;
      return vector.elements.size() == count ? std::nullopt : wrong(instruction, vector, count);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Finding check_vectors(const Module& module) {
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions)
      if (Finding problem = check_instruction(module, instruction)) return problem;
  return std::nullopt;
}

}  // namespace firebreak::ptx
