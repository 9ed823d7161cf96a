// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "kernels/ptx/dump.h"
#include "kernels/ptx/modifier_table.h"
#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string signed_offset(std::int64_t offset) {
  if (offset == 0) return "";
  return (offset > 0 ? "+" : "") + std::to_string(offset);
}

class InstructionWriter {
 public:
  InstructionWriter(const Module& module, const Function& function) : module_(module), function_(function) {}

  std::string write(const Instruction& instruction) const {
    const bool known = instruction.opcode != Opcode::Opaque;
    std::string text =
        guard(instruction.guard) +
        (known ? mnemonic(instruction) : function_.opaque_instructions[instruction.opaque_index].text);
    if (instruction.opcode == Opcode::Call) return text + call(function_.calls[instruction.call_index]);
    const char* separator = " ";
    for (const Operand& operand : instruction.operands) {
      text += separator + write(operand);
      separator = ", ";
    }
    return text;
  }

 private:
  std::string guard(const Guard& guard) const {
    if (guard.register_index == no_index) return "";
    return std::string("@") + (guard.negated ? "!" : "") + register_name(guard.register_index) + " ";
  }

  static std::string mnemonic(const Instruction& instruction) {
    std::string text(variants_of(instruction.opcode).front().name);
    for (std::size_t i = 0; i < modifier_group_count; ++i) {
      const std::string_view word = modifier_word(instruction.modifiers, static_cast<ModifierGroup>(i));
      if (!word.empty()) text += '.' + std::string(word);
    }
    for (const Type type :
         {instruction.type, instruction.source_type, instruction.more_types[0], instruction.more_types[1]})
      if (type != Type::None) text += std::string(".") + name_of(type);
    return text;
  }

  std::string register_name(std::uint32_t index) const {
    return index == no_index ? "_" : function_.registers[index].name + '#' + std::to_string(index);
  }

  std::string symbol_name(const Symbol& symbol) const {
    switch (symbol.kind) {
      case SymbolKind::ModuleVariable:
        return "global " + module_.variables[symbol.index].name;
      case SymbolKind::FunctionVariable:
        return "own " + function_.variables[symbol.index].name + '#' + std::to_string(symbol.index);
      case SymbolKind::Parameter:
        return "parameter " + function_.parameters[symbol.index].name;
      case SymbolKind::ReturnParameter:
        return "return " + function_.return_parameters[symbol.index].name;
      case SymbolKind::Function:
        return "function " + module_.functions[symbol.index].name;
      case SymbolKind::None:
        break;
    }
    return "nothing";
  }

  std::string vector(const Operand& operand) const {
    std::string text = "{";
    for (const VectorElement& element : operand.elements) {
      if (text.size() > 1) text += ", ";
      text += element.kind == OperandKind::Immediate ? hexadecimal(element.bits)
                                                     : register_name(element.register_index);
    }
    return text + "}";
  }

  std::string write(const Operand& operand) const {
    switch (operand.kind) {
      case OperandKind::Register:
        return (operand.negated ? "!" : "") + register_name(operand.register_index);
      case OperandKind::Immediate:
        return hexadecimal(operand.bits);
      case OperandKind::Symbol:
        return symbol_name(operand.symbol) + signed_offset(operand.offset);
      case OperandKind::RegisterAddress:
        return "[" + register_name(operand.register_index) + signed_offset(operand.offset) + "]";
      case OperandKind::SymbolAddress:
        return "[" + symbol_name(operand.symbol) + signed_offset(operand.offset) + "]";
      case OperandKind::AbsoluteAddress:
        return "[" + hexadecimal(static_cast<std::uint64_t>(operand.offset)) + "]";
      case OperandKind::Vector:
        return vector(operand);
      case OperandKind::Label:
        return "-> " + std::to_string(operand.target);
      case OperandKind::BranchTable:
        return "table " + std::to_string(operand.target);
      case OperandKind::SpecialRegister:
        return std::string(name_of(operand.special));
      case OperandKind::Sink:
        return "_";
      case OperandKind::PredicatePair:
        return register_name(operand.register_index) + "|" + register_name(operand.second_register_index);
      case OperandKind::None:
        break;
    }
    return "nothing";
  }

  std::string list(const std::vector<Operand>& operands) const {
    std::string text = "(";
    for (const Operand& operand : operands) text += (text.size() > 1 ? ", " : "") + write(operand);
    return text + ")";
  }

  std::string call(const Call& call) const {
    std::string text = " " + list(call.returns) + ", ";
    text += call.function_index != no_index ? module_.functions[call.function_index].name
                                            : register_name(call.target_register_index);
    text += ", " + list(call.arguments);
    if (call.prototype_index != no_index) text += ", " + function_.prototypes[call.prototype_index].name;
    if (call.targets_index != no_index) text += ", " + function_.call_targets[call.targets_index].name;
    return text;
  }

  const Module& module_;
  const Function& function_;
};

}  // namespace

std::string dump(const Module& module, const Function& function, const Instruction& instruction) {
  return InstructionWriter(module, function).write(instruction);
}

}  // namespace firebreak::ptx
