// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

class ReferenceChecker {
 public:
  ReferenceChecker(const Module& module, const Function& function) : module_(module), function_(function) {}

  Finding run() const {
    for (const Parameter& parameter : function_.parameters)
      if (!parameter_is_valid(parameter))
        return complain(parameter.location, "the parameter has no register");
    for (const Parameter& parameter : function_.return_parameters)
      if (!parameter_is_valid(parameter))
        return complain(parameter.location, "the parameter has no register");
    for (const CallTargets& targets : function_.call_targets)
      for (const std::uint32_t index : targets.function_indices)
        if (index >= module_.functions.size())
          return complain(function_.location, "a call target does not exist");
    for (const Instruction& instruction : function_.instructions)
      if (Finding problem = check(instruction)) return problem;
    return std::nullopt;
  }

 private:
  bool parameter_is_valid(const Parameter& parameter) const {
    return parameter.space != StateSpace::Reg || !function_.has_body || is_register(parameter.register_index);
  }

  bool is_register(std::uint32_t index) const { return index < function_.registers.size(); }
  bool is_register_or_none(std::uint32_t index) const { return index == no_index || is_register(index); }

  bool is_symbol(const Symbol& symbol) const {
    switch (symbol.kind) {
      case SymbolKind::ModuleVariable:
        return symbol.index < module_.variables.size();
      case SymbolKind::FunctionVariable:
        return symbol.index < function_.variables.size();
      case SymbolKind::Function:
        return symbol.index < module_.functions.size();
      case SymbolKind::Parameter:
        return symbol.index < function_.parameters.size() &&
               function_.parameters[symbol.index].space == StateSpace::Param;
      case SymbolKind::ReturnParameter:
        return symbol.index < function_.return_parameters.size() &&
               function_.return_parameters[symbol.index].space == StateSpace::Param;
      case SymbolKind::None:
        return false;
    }
    return false;
  }

  bool is_vector(const Operand& operand) const {
    for (const VectorElement& element : operand.elements) {
      const bool is_kind = element.kind == OperandKind::Immediate || element.kind == OperandKind::Sink ||
                           element.kind == OperandKind::Register;
      if (!is_kind || (element.kind == OperandKind::Register && !is_register(element.register_index)))
        return false;
    }
    return !operand.elements.empty();
  }

  bool is_valid(const Operand& operand) const {
    switch (operand.kind) {
      case OperandKind::Register:
      case OperandKind::RegisterAddress:
        return is_register(operand.register_index);
      case OperandKind::Symbol:
        return is_symbol(operand.symbol);
      case OperandKind::SymbolAddress:
        return is_symbol(operand.symbol) && operand.symbol.kind != SymbolKind::Function;
      case OperandKind::Vector:
        return is_vector(operand);
      case OperandKind::PredicatePair:
        return is_register_or_none(operand.register_index) &&
               is_register_or_none(operand.second_register_index);
      case OperandKind::SpecialRegister:
        return operand.special != SpecialRegister::None;
      case OperandKind::BranchTable:
        return operand.target < function_.branch_tables.size();
      case OperandKind::Label:
      case OperandKind::Immediate:
      case OperandKind::AbsoluteAddress:
      case OperandKind::Sink:
        return true;
      case OperandKind::None:
        return false;
    }
    return false;
  }

  Finding check(const Instruction& instruction) const {
    const bool is_call = instruction.opcode == Opcode::Call;
    const bool is_opaque = instruction.opcode == Opcode::Opaque;
    if (is_opaque != (instruction.opaque_index < function_.opaque_instructions.size()))
      return complain(instruction.location, "the unknown instruction has no text");
    if (!is_opaque && variants_of(instruction.opcode).empty())
      return complain(instruction.location, "the instruction does not exist");
    if (!is_register_or_none(instruction.guard.register_index))
      return complain(instruction.location, "the guard does not exist");
    for (const Operand& operand : instruction.operands)
      if (!is_valid(operand)) return complain(operand.location, "the operand does not exist");
    if (is_call != (instruction.call_index < function_.calls.size()))
      return complain(instruction.location, "the call does not exist");
    return is_call ? check(function_.calls[instruction.call_index], instruction.location) : std::nullopt;
  }

  Finding check(const Call& call, SourceLocation location) const {
    const bool direct = call.function_index != no_index;
    const bool target =
        direct ? call.function_index < module_.functions.size() : is_register(call.target_register_index);
    const bool prototype =
        call.prototype_index == no_index || call.prototype_index < function_.prototypes.size();
    const bool targets = call.targets_index == no_index || call.targets_index < function_.call_targets.size();
    if (!target || !prototype || !targets) return complain(location, "the callee does not exist");
    for (const std::vector<Operand>* list : {&call.returns, &call.arguments})
      for (const Operand& operand : *list)
        if (!is_valid(operand)) return complain(operand.location, "the argument does not exist");
    return std::nullopt;
  }

  const Module& module_;
  const Function& function_;
};

bool relocation_is_valid(const Module& module, const Variable& variable, const Relocation& relocation) {
  const Symbol& symbol = relocation.symbol;
  const bool exists = (symbol.kind == SymbolKind::ModuleVariable && symbol.index < module.variables.size()) ||
                      (symbol.kind == SymbolKind::Function && symbol.index < module.functions.size());
  return exists && relocation.offset_bytes + relocation.size_bytes <= variable.initial.size();
}

Finding check_variables(const Module& module, const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    for (const Relocation& relocation : variable.relocations)
      if (!relocation_is_valid(module, variable, relocation))
        return complain(variable.location, quoted(variable.name) +
                                               " is initialised with the address of something that has none");
    if (variable.initial.size() > variable.size_bytes)
      return complain(variable.location, quoted(variable.name) + " has more initial bytes than it is long");
  }
  return std::nullopt;
}

}  // namespace

Finding check_references(const Module& module) {
  if (Finding problem = check_variables(module, module.variables)) return problem;
  for (const Function& function : module.functions) {
    if (Finding problem = check_variables(module, function.variables)) return problem;
    if (Finding problem = ReferenceChecker(module, function).run()) return problem;
  }
  return std::nullopt;
}

}  // namespace firebreak::ptx
