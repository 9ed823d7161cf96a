// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

Finding check_instruction(const Instruction& instruction) {
  if (instruction.opcode == Opcode::Opaque) return std::nullopt;
  const InstructionVariant* variant = find_variant(
      instruction.opcode,
      {instruction.type, instruction.source_type, instruction.more_types[0], instruction.more_types[1]});
  if (variant == nullptr)
    return complain(instruction.location, short_name(instruction) + " does not exist with these types");
  for (std::size_t i = 0; i < modifier_group_count; ++i) {
    const auto group = static_cast<ModifierGroup>(i);
    const bool is_given = modifier_given(instruction.modifiers, group);
    if (is_given && ((variant->allowed | variant->required) & bit(group)) == 0)
      return complain(instruction.location,
                      short_name(instruction) + " does not take " + std::string(describe(group)));
    if (!is_given && group != ModifierGroup::Hint && (variant->required & bit(group)) != 0)
      return complain(instruction.location,
                      short_name(instruction) + " needs " + std::string(describe(group)));
  }
  return std::nullopt;
}

}  // namespace

Finding check_modifiers(const Module& module) {
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions)
      if (Finding problem = check_instruction(instruction)) return problem;
  return std::nullopt;
}

}  // namespace firebreak::ptx
