// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

using S = StateSpace;

constexpr unsigned bit(S space) { return 1U << static_cast<unsigned>(space); }
template <class... Spaces>
constexpr unsigned spaces(Spaces... listed) {
  return (bit(listed) | ...);
}

// The state spaces that an instruction may name. S::None: it may also be generic.
struct Rule {
  Opcode opcode;
  unsigned allowed;
};
constexpr std::array rules{
    Rule{Opcode::Ld, spaces(S::None, S::Const, S::Global, S::Local, S::Param, S::Shared, S::SharedCluster)},
    Rule{Opcode::St, spaces(S::None, S::Global, S::Local, S::Param, S::Shared, S::SharedCluster)},
    Rule{Opcode::Ldu, spaces(S::None, S::Global)},
    Rule{Opcode::Atom, spaces(S::None, S::Global, S::Shared, S::SharedCluster)},
    Rule{Opcode::Red, spaces(S::None, S::Global, S::Shared, S::SharedCluster)},
    Rule{Opcode::Prefetch, spaces(S::None, S::Global, S::Local)},
    Rule{Opcode::Cvta, spaces(S::Const, S::Global, S::Local, S::Param, S::Shared, S::SharedCluster)},
    Rule{Opcode::Isspacep, spaces(S::Const, S::Global, S::Local, S::Param, S::Shared, S::SharedCluster)},
    Rule{Opcode::Mapa, spaces(S::None, S::SharedCluster)},
    Rule{Opcode::CpAsync, spaces(S::Shared)},
    Rule{Opcode::Ldmatrix, spaces(S::None, S::Shared)},
    Rule{Opcode::Stmatrix, spaces(S::None, S::Shared)},
    Rule{Opcode::MbarrierInit, spaces(S::None, S::Shared)},
    Rule{Opcode::MbarrierInval, spaces(S::None, S::Shared)},
    Rule{Opcode::MbarrierArrive, spaces(S::None, S::Shared, S::SharedCluster)},
    Rule{Opcode::MbarrierTestWait, spaces(S::None, S::Shared)},
    Rule{Opcode::MbarrierTryWait, spaces(S::None, S::Shared)},
    Rule{Opcode::Discard, spaces(S::None, S::Global)},
};

S space_of(const Module& module, const Function& function, const Symbol& symbol) {
  switch (symbol.kind) {
    case SymbolKind::ModuleVariable:
      return module.variables[symbol.index].space;
    case SymbolKind::FunctionVariable:
      return function.variables[symbol.index].space;
    case SymbolKind::Parameter:
    case SymbolKind::ReturnParameter:
      return S::Param;
    default:
      return S::None;
  }
}

bool writes_memory(Opcode opcode) {
  return opcode == Opcode::St || opcode == Opcode::Atom || opcode == Opcode::Red ||
         opcode == Opcode::Stmatrix;
}

// `named`: the state space of the instruction; `actual`: of the variable.
bool agree(S named, S actual) {
  return named == S::None || named == actual || (named == S::SharedCluster && actual == S::Shared);
}

Finding check_symbol(const Module& module, const Function& function, const Instruction& instruction,
                     std::size_t index) {
  const Operand& operand = instruction.operands[index];
  const S actual = space_of(module, function, operand.symbol);
  const bool is_source = instruction.opcode == Opcode::CpAsync && index == 1;
  const S named = is_source ? instruction.modifiers.source_space : instruction.modifiers.space;
  if (!agree(named, actual))
    return complain(operand.location, short_name(instruction) + " names ." + name_of(named) +
                                          ", the variable is in ." + name_of(actual));
  if (!writes_memory(instruction.opcode)) return std::nullopt;
  if (actual == S::Const) return complain(operand.location, "a .const variable cannot be written");
  if (operand.symbol.kind == SymbolKind::Parameter)
    return complain(operand.location, "a parameter of the function itself cannot be written");
  return std::nullopt;
}

Finding check_instruction(const Module& module, const Function& function, const Instruction& instruction) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& candidate) {
    return candidate.opcode == instruction.opcode;
  });
  if (rule != rules.end() && (rule->allowed & bit(instruction.modifiers.space)) == 0)
    return complain(instruction.location,
                    short_name(instruction) + " does not work on ." + name_of(instruction.modifiers.space));
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const OperandKind kind = instruction.operands[i].kind;
    const bool converted = kind == OperandKind::Symbol && instruction.opcode == Opcode::Cvta;
    if (kind != OperandKind::SymbolAddress && !converted) continue;
    if (Finding problem = check_symbol(module, function, instruction, i)) return problem;
  }
  return std::nullopt;
}

Finding check_variables(const std::vector<Variable>& variables, unsigned allowed) {
  for (const Variable& variable : variables) {
    const bool initialised = !variable.initial.empty();
    if ((allowed & bit(variable.space)) == 0)
      return complain(variable.location,
                      quoted(variable.name) + " cannot be declared in ." + name_of(variable.space) + " here");
    if (initialised && variable.space != S::Global && variable.space != S::Const)
      return complain(variable.location, "only .global and .const variables can have initial values");
    if (variable.managed && variable.space != S::Global)
      return complain(variable.location, "only .global variables can be managed");
  }
  return std::nullopt;
}

}  // namespace

Finding check_spaces(const Module& module) {
  if (Finding problem = check_variables(module.variables, spaces(S::Global, S::Const, S::Shared)))
    return problem;
  for (const Function& function : module.functions) {
    const unsigned allowed = spaces(S::Global, S::Const, S::Shared, S::Local, S::Param);
    if (Finding problem = check_variables(function.variables, allowed)) return problem;
    for (const Instruction& instruction : function.instructions)
      if (Finding problem = check_instruction(module, function, instruction)) return problem;
  }
  return std::nullopt;
}

}  // namespace firebreak::ptx
