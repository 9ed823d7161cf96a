// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

std::vector<Operand> parse_operands_in_parentheses(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  std::vector<Operand> operands;
  tokens.expect("(");
  if (tokens.accept(")")) return operands;
  do {
    operands.push_back(parse_operand(parser));
  } while (tokens.accept(",") && !tokens.failed());
  tokens.expect(")");
  return operands;
}

// A function, or a register that holds the address of one.
void parse_target(Parser& parser, Call& call) {
  TokenStream& tokens = parser.tokens;
  const Token name = tokens.expect_word("a function");
  const NameEntry* entry = tokens.failed() ? nullptr : parser.names.find(name.text);
  if (entry != nullptr && entry->kind == NameKind::Register) {
    call.target_register_index = use_register(parser, name);
  } else if (entry != nullptr && entry->symbol.kind == SymbolKind::Function) {
    call.function_index = entry->symbol.index;
  } else {
    tokens.fail(name.location, quoted(name.text) + " is not a function declared before");
  }
}

void parse_signature(Parser& parser, Call& call) {
  TokenStream& tokens = parser.tokens;
  const Token name = tokens.expect_word("a call prototype");
  const NameEntry* entry = tokens.failed() ? nullptr : parser.names.find(name.text);
  if (entry != nullptr && entry->kind == NameKind::Prototype)
    call.prototype_index = entry->index;
  else if (entry != nullptr && entry->kind == NameKind::CallTargets)
    call.targets_index = entry->index;
  else
    tokens.fail(name.location, quoted(name.text) + " is not a call prototype or list of targets");
}

}  // namespace

void parse_call(Parser& parser, Instruction& instruction) {
  TokenStream& tokens = parser.tokens;
  Call call;
  if (tokens.at("(")) {
    call.returns = parse_operands_in_parentheses(parser);
    tokens.expect(",");
  }
  parse_target(parser, call);
  if (tokens.accept(",")) {
    if (tokens.at("("))
      call.arguments = parse_operands_in_parentheses(parser);
    else
      parse_signature(parser, call);
    if (tokens.accept(",")) parse_signature(parser, call);
  }
  std::vector<Call>& calls = parser.function().calls;
  instruction.call_index = static_cast<std::uint32_t>(calls.size());
  calls.push_back(std::move(call));
}

void parse_prototype(Parser& parser, const Token& name) {
  TokenStream& tokens = parser.tokens;
  Prototype prototype;
  prototype.name = std::string(name.text);
  if (tokens.at("(")) prototype.return_parameters = parse_parameters(parser, true);
  tokens.expect_word("'_'");
  if (tokens.at("(")) prototype.parameters = parse_parameters(parser, true);
  tokens.accept_dotted("noreturn");
  tokens.expect(";");
  std::vector<Prototype>& prototypes = parser.function().prototypes;
  const auto index = static_cast<std::uint32_t>(prototypes.size());
  prototypes.push_back(std::move(prototype));
  if (!parser.names.declare(name.text, {NameKind::Prototype, Type::None, {}, index}))
    tokens.fail(name.location, quoted(name.text) + " is declared twice");
}

void parse_call_targets(Parser& parser, const Token& name) {
  TokenStream& tokens = parser.tokens;
  CallTargets targets;
  targets.name = std::string(name.text);
  do {
    const Token function = tokens.expect_word("a function");
    const NameEntry* entry = tokens.failed() ? nullptr : parser.names.find(function.text);
    if (entry == nullptr || entry->symbol.kind != SymbolKind::Function)
      return tokens.fail(function.location, quoted(function.text) + " is not a function declared before");
    targets.function_indices.push_back(entry->symbol.index);
  } while (tokens.accept(","));
  tokens.expect(";");
  std::vector<CallTargets>& all = parser.function().call_targets;
  const auto index = static_cast<std::uint32_t>(all.size());
  all.push_back(std::move(targets));
  if (!parser.names.declare(name.text, {NameKind::CallTargets, Type::None, {}, index}))
    tokens.fail(name.location, quoted(name.text) + " is declared twice");
}

}  // namespace firebreak::ptx
