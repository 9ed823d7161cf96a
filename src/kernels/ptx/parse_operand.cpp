// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

Operand immediate(Parser& parser) {
  const Constant constant = parse_constant(parser);
  Operand operand;
  operand.kind = OperandKind::Immediate;
  operand.bits = constant.bits;
  operand.is_float_literal = constant.is_float;
  operand.is_single_literal = constant.is_single;
  return operand;
}

std::int64_t parse_offset(Parser& parser) {
  const Constant constant = parse_constant(parser);
  if (constant.is_float) parser.tokens.fail(constant.location, "an offset must be an integer");
  return static_cast<std::int64_t>(constant.bits);
}

void undeclared(Parser& parser, const Token& name) {
  parser.tokens.fail(name.location, quoted(name.text) + " is not declared");
}

// [register], [symbol], [address], each with +offset
Operand parse_address(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  Operand operand;
  tokens.expect("[");
  if (!tokens.at_word() || at_constant(parser)) {
    operand.kind = OperandKind::AbsoluteAddress;
    operand.offset = parse_offset(parser);
    tokens.expect("]");
    return operand;
  }
  const Token name = tokens.next();
  const NameEntry* entry = parser.names.find(name.text);
  if (entry == nullptr) {
    undeclared(parser, name);
  } else if (entry->kind == NameKind::Register) {
    operand.kind = OperandKind::RegisterAddress;
    operand.register_index = use_register(parser, name);
  } else if (entry->kind == NameKind::Symbol && entry->symbol.kind != SymbolKind::Function) {
    operand.kind = OperandKind::SymbolAddress;
    operand.symbol = entry->symbol;
  } else {
    tokens.fail(name.location, quoted(name.text) + " is not a register or variable");
  }
  if (tokens.accept("+")) operand.offset = parse_offset(parser);
  tokens.expect("]");
  return operand;
}

VectorElement parse_element(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  VectorElement element;
  if (at_constant(parser)) {
    const Constant constant = parse_constant(parser);
    element.kind = OperandKind::Immediate;
    element.bits = constant.bits;
    element.is_float_literal = constant.is_float;
    element.is_single_literal = constant.is_single;
    return element;
  }
  const Token name = tokens.expect_word("a register");
  if (name.text == "_") {
    element.kind = OperandKind::Sink;
  } else if (!tokens.failed()) {
    element.kind = OperandKind::Register;
    element.register_index = use_register(parser, name);
  }
  return element;
}

Operand parse_vector(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  Operand operand;
  operand.kind = OperandKind::Vector;
  const SourceLocation location = tokens.next().location;
  do {
    operand.elements.push_back(parse_element(parser));
    if (operand.elements.size() > max_vector_elements)
      tokens.fail(location, "this vector has too many elements");
  } while (tokens.accept(","));
  tokens.expect("}");
  return operand;
}

// The second half of p|q.
void parse_pair(Parser& parser, Operand& operand) {
  const Token second = parser.tokens.expect_word("a register");
  operand.kind = OperandKind::PredicatePair;
  if (!parser.tokens.failed() && second.text != "_")
    operand.second_register_index = use_register(parser, second);
}

Operand parse_special(Parser& parser, const Token& name) {
  TokenStream& tokens = parser.tokens;
  const Token component = tokens.peek().kind == TokenKind::Dotted ? tokens.next() : Token{};
  Operand operand;
  operand.kind = OperandKind::SpecialRegister;
  operand.special = special_register_from_name(name.text, component.text);
  const std::string written =
      std::string(name.text) + (component.text.empty() ? "" : "." + std::string(component.text));
  if (operand.special == SpecialRegister::None)
    tokens.fail(name.location, quoted(written) + " is not declared");
  return operand;
}

Operand parse_named(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  const Token name = tokens.expect_word("an operand");
  Operand operand;
  if (tokens.failed()) return operand;
  if (name.text == "_") {
    operand.kind = OperandKind::Sink;
    if (tokens.accept("|")) parse_pair(parser, operand);
    return operand;
  }
  const NameEntry* entry = parser.names.find(name.text);
  if (entry == nullptr) return parse_special(parser, name);
  if (entry->kind == NameKind::Register) {
    operand.kind = OperandKind::Register;
    operand.register_index = use_register(parser, name);
    if (tokens.accept("|")) parse_pair(parser, operand);
  } else if (entry->kind == NameKind::Symbol) {
    operand.kind = OperandKind::Symbol;
    operand.symbol = entry->symbol;
    if (tokens.accept("+")) operand.offset = parse_offset(parser);
  } else if (entry->kind == NameKind::BranchTable) {
    operand.kind = OperandKind::BranchTable;
    operand.target = entry->index;
  } else {
    tokens.fail(name.location, quoted(name.text) + " cannot be an operand");
  }
  return operand;
}

}  // namespace

std::uint32_t use_register(Parser& parser, const Token& name) {
  NameEntry* entry = parser.names.find(name.text);
  if (entry == nullptr) {
    undeclared(parser, name);
    return no_index;
  }
  if (entry->kind != NameKind::Register) {
    parser.tokens.fail(name.location, quoted(name.text) + " is not a register");
    return no_index;
  }
  std::vector<Register>& registers = parser.function().registers;
  if (entry->index == no_index) {
    entry->index = static_cast<std::uint32_t>(registers.size());
    registers.push_back({std::string(name.text), entry->type});
  }
  return entry->index;
}

Operand parse_operand(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  const SourceLocation location = tokens.peek().location;
  Operand operand;
  if (tokens.at("[")) {
    operand = parse_address(parser);
  } else if (tokens.at("{")) {
    operand = parse_vector(parser);
  } else if (at_constant(parser)) {
    operand = immediate(parser);
  } else {
    const bool negated = tokens.accept("!");
    operand = parse_named(parser);
    operand.negated = negated;
    if (negated && operand.kind != OperandKind::Register && !tokens.failed())
      tokens.fail(location, "'!' stands before a predicate register");
  }
  operand.location = location;
  return operand;
}

}  // namespace firebreak::ptx
