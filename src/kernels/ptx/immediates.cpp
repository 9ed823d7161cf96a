// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/immediates.h"

#include "kernels/ptx/literal.h"
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/signature.h"

namespace firebreak::ptx {
namespace {

template <class Number>
void encode(Number& number, Type type) {
  const Literal literal{number.bits, number.is_float_literal, number.is_single_literal};
  number.bits = literal_bits(literal, type).value_or(number.bits);
}

// The parts of a packed move have no type of their own.
Type type_of_element(const Instruction& instruction, const OperandSpec& spec, std::size_t count) {
  if (spec.rule != 'M') return type_of(spec, instruction);
  switch (size_bytes(instruction.type) / count) {
    case 1:
      return Type::B8;
    case 2:
      return Type::B16;
    case 4:
      return Type::B32;
    default:
      return Type::B64;
  }
}

Finding encode_instruction(const Function& function, Instruction& instruction) {
  const FormMatch match = match_operands(function, instruction);
  if (const auto* problem = std::get_if<Diagnostic>(&match)) return *problem;
  const auto& specs = std::get<std::vector<OperandSpec>>(match);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::Immediate) encode(operand, type_of(specs[i], instruction));
    for (VectorElement& element : operand.elements)
      if (element.kind == OperandKind::Immediate)
        encode(element, type_of_element(instruction, specs[i], operand.elements.size()));
  }
  return std::nullopt;
}

void encode_call(const Module& module, const Function& function, Call& call) {
  const Signature signature = signature_of(module, function, call);
  if (signature.parameters == nullptr) return;
  for (std::size_t i = 0; i < std::min(call.arguments.size(), signature.parameters->size()); ++i)
    if (call.arguments[i].kind == OperandKind::Immediate)
      encode(call.arguments[i], (*signature.parameters)[i].type);
}

}  // namespace

Finding encode_immediates(const Module& module, Function& function) {
  for (Instruction& instruction : function.instructions)
    if (instruction.opcode != Opcode::Call && instruction.opcode != Opcode::Opaque)
      if (Finding problem = encode_instruction(function, instruction)) return problem;
  for (Call& call : function.calls) encode_call(module, function, call);
  return std::nullopt;
}

}  // namespace firebreak::ptx
