// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

// `.ptr .global .align 4`: what the pointer points to does not matter here.
void parse_pointer(Parser& parser, Parameter& parameter) {
  TokenStream& tokens = parser.tokens;
  parameter.is_pointer = true;
  while (tokens.peek().kind == TokenKind::Dotted) {
    if (tokens.accept_dotted("align"))
      parse_alignment(parser);
    else if (space_from_name(tokens.peek().text) != StateSpace::None)
      tokens.next();
    else
      return tokens.fail_expected("a parameter's name");
  }
}

Parameter parse_parameter(Parser& parser, bool registers_allowed) {
  TokenStream& tokens = parser.tokens;
  Parameter parameter;
  std::uint32_t alignment = 0;
  if (registers_allowed && tokens.accept_dotted("reg"))
    parameter.space = StateSpace::Reg;
  else if (!tokens.accept_dotted("param"))
    tokens.fail_expected("'.param'");
  if (tokens.accept_dotted("align")) alignment = parse_alignment(parser);
  parameter.type = parse_type(parser);
  if (tokens.accept_dotted("align")) alignment = parse_alignment(parser);
  if (tokens.accept_dotted("ptr")) parse_pointer(parser, parameter);
  const Token name = tokens.expect_word("a parameter's name");
  parameter.name = std::string(name.text);
  parameter.location = name.location;
  parameter.dimensions = parse_dimensions(parser);
  parameter.size_bytes = total_bytes(parser, parameter.dimensions, size_bytes(parameter.type), name.location);
  parameter.alignment_bytes = std::max(1U, alignment != 0 ? alignment : size_bytes(parameter.type));
  if (parameter.space == StateSpace::Param && parameter.type == Type::Pred)
    tokens.fail(name.location, "a predicate cannot be in the .param space");
  if (parameter.space == StateSpace::Reg && !parameter.dimensions.empty())
    tokens.fail(name.location, "a register cannot be an array");
  return parameter;
}

}  // namespace

std::vector<Parameter> parse_parameters(Parser& parser, bool registers_allowed) {
  TokenStream& tokens = parser.tokens;
  std::vector<Parameter> parameters;
  tokens.expect("(");
  if (tokens.accept(")")) return parameters;
  std::uint64_t end = 0;
  do {
    Parameter parameter = parse_parameter(parser, registers_allowed);
    if (tokens.failed()) return parameters;
    if (parameter.space == StateSpace::Param) {
      parameter.offset_bytes = align_up(end, parameter.alignment_bytes);
      end = parameter.offset_bytes + parameter.size_bytes;
    }
    parameters.push_back(std::move(parameter));
  } while (tokens.accept(","));
  tokens.expect(")");
  return parameters;
}

void declare_parameters(Parser& parser, std::vector<Parameter>& parameters, SymbolKind kind) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = parameters[i];
    NameEntry entry{NameKind::Symbol, Type::None, {kind, static_cast<std::uint32_t>(i)}, no_index};
    if (parameter.space == StateSpace::Reg) {
      parameter.register_index = static_cast<std::uint32_t>(parser.function().registers.size());
      parser.function().registers.push_back({parameter.name, parameter.type});
      entry = {NameKind::Register, parameter.type, {}, parameter.register_index};
    }
    if (!parser.names.declare(parameter.name, entry))
      parser.tokens.fail(parameter.location, quoted(parameter.name) + " is declared twice");
  }
}

std::uint64_t block_bytes(const std::vector<Parameter>& parameters) {
  std::uint64_t end = 0;
  for (const Parameter& parameter : parameters)
    if (parameter.space == StateSpace::Param)
      end = std::max(end, parameter.offset_bytes + parameter.size_bytes);
  return end;
}

}  // namespace firebreak::ptx
