// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

Finding check_function(const Function& function) {
  const std::size_t end = function.instructions.size();
  for (const Label& label : function.labels)
    if (label.target > end)
      return complain(label.location, "label " + quoted(label.name) + " is outside its function");
  for (const BranchTable& table : function.branch_tables)
    for (const std::uint32_t target : table.targets)
      if (target > end)
        return complain(function.location, quoted(table.name) + " leads outside its function");
  for (const Instruction& instruction : function.instructions)
    for (const Operand& operand : instruction.operands)
      if (operand.kind == OperandKind::Label && operand.target > end)
        return complain(operand.location, "the branch leads outside its function");
  return std::nullopt;
}

}  // namespace

Finding check_labels(const Module& module) {
  for (const Function& function : module.functions)
    if (Finding problem = check_function(function)) return problem;
  return std::nullopt;
}

}  // namespace firebreak::ptx
