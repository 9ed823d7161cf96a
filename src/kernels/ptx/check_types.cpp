// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

Finding check_guard(const Function& function, const Instruction& instruction) {
  const std::uint32_t index = instruction.guard.register_index;
  if (index == no_index || function.registers[index].type == Type::Pred) return std::nullopt;
  return complain(instruction.location,
                  "the guard " + quoted(function.registers[index].name) + " is not a predicate");
}

Finding check_address(const Function& function, const Operand& operand) {
  if (operand.kind != OperandKind::RegisterAddress) return std::nullopt;
  const Register& base = function.registers[operand.register_index];
  const bool fits = register_fits(base.type, Type::U64, false) || register_fits(base.type, Type::U32, false);
  if (fits && kind_of(base.type) != TypeKind::Float) return std::nullopt;
  return complain(operand.location,
                  quoted(base.name) + " (." + name_of(base.type) + ") cannot hold an address");
}

Finding check_instruction(const Function& function, const Instruction& instruction) {
  if (Finding problem = check_guard(function, instruction)) return problem;
  if (instruction.opcode == Opcode::Call || instruction.opcode == Opcode::Opaque) return std::nullopt;
  const FormMatch match = match_operands(function, instruction);
  if (const auto* problem = std::get_if<Diagnostic>(&match)) return *problem;
  for (const Operand& operand : instruction.operands)
    if (Finding problem = check_address(function, operand)) return problem;
  return std::nullopt;
}

}  // namespace

Finding check_types(const Module& module) {
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions)
      if (Finding problem = check_instruction(function, instruction)) return problem;
  return std::nullopt;
}

}  // namespace firebreak::ptx
