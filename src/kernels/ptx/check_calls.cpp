// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/literal.h"
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/signature.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

// The variable in .param space that an argument names; its size in bytes.
std::optional<std::uint64_t> param_bytes(const Function& caller, const Operand& argument) {
  const std::uint32_t index = argument.symbol.index;
  switch (argument.symbol.kind) {
    case SymbolKind::FunctionVariable:
      if (caller.variables[index].space != StateSpace::Param) return std::nullopt;
      return caller.variables[index].size_bytes;
    case SymbolKind::Parameter:
      return caller.parameters[index].size_bytes;
    case SymbolKind::ReturnParameter:
      return caller.return_parameters[index].size_bytes;
    default:
      return std::nullopt;
  }
}

bool symbol_fits(const Function& caller, const Operand& argument, const Parameter& parameter) {
  const std::optional<std::uint64_t> bytes = param_bytes(caller, argument);
  return bytes && argument.offset == 0 && (*bytes == parameter.size_bytes || parameter.size_bytes == 0);
}

bool argument_fits(const Function& caller, const Operand& argument, const Parameter& parameter,
                   bool is_return) {
  switch (argument.kind) {
    case OperandKind::Symbol:
      return symbol_fits(caller, argument, parameter);
    case OperandKind::Register:
      return parameter.dimensions.empty() && !argument.negated &&
             register_fits(caller.registers[argument.register_index].type, parameter.type, false);
    case OperandKind::Immediate:
      return !is_return && parameter.dimensions.empty() &&
             literal_fits(argument.is_float_literal, argument.is_single_literal, parameter.type);
    case OperandKind::Sink:
      return is_return;
    default:
      return false;
  }
}

Finding check_list(const Function& caller, const std::vector<Operand>& actual,
                   const std::vector<Parameter>& formal, SourceLocation location, bool is_return) {
  const std::string what = is_return ? "return value" : "argument";
  if (actual.size() != formal.size())
    return complain(location, "the callee has " + std::to_string(formal.size()) + " " + what +
                                  "s, the call " + std::to_string(actual.size()));
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (!argument_fits(caller, actual[i], formal[i], is_return))
      return complain(actual[i].location, what + " " + std::to_string(i + 1) +
                                              " does not fit the callee's parameter " +
                                              quoted(formal[i].name));
  return std::nullopt;
}

Finding check_call(const Module& module, const Function& caller, const Instruction& instruction) {
  const Call& call = caller.calls[instruction.call_index];
  if (call.function_index != no_index && module.functions[call.function_index].is_entry)
    return complain(instruction.location,
                    quoted(module.functions[call.function_index].name) + " is a kernel and cannot be called");
  if (call.target_register_index != no_index &&
      !register_fits(caller.registers[call.target_register_index].type, Type::U64, false) &&
      !register_fits(caller.registers[call.target_register_index].type, Type::U32, false))
    return complain(instruction.location, "the callee's register cannot hold an address");
  const Signature signature = signature_of(module, caller, call);
  if (signature.parameters == nullptr)
    return complain(instruction.location, "an indirect call needs a prototype or a list of targets");
  if (Finding problem = check_list(caller, call.returns, *signature.returns, instruction.location, true))
    return problem;
  return check_list(caller, call.arguments, *signature.parameters, instruction.location, false);
}

}  // namespace

Finding check_calls(const Module& module) {
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions)
      if (instruction.opcode == Opcode::Call)
        if (Finding problem = check_call(module, function, instruction)) return problem;
  return std::nullopt;
}

}  // namespace firebreak::ptx
