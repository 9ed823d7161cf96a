// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

// The words that may stand between the state space and the name, in any order.
struct Qualifiers {
  Type type = Type::None;
  std::uint32_t vector_arity = 1;
  std::uint32_t alignment_bytes = 0;
  bool managed = false;
};

void parse_attribute(Parser& parser, Qualifiers& qualifiers) {
  TokenStream& tokens = parser.tokens;
  tokens.expect("(");
  if (tokens.at_dotted("managed")) qualifiers.managed = true;
  while (!tokens.at_end() && !tokens.at(")")) tokens.next();
  tokens.expect(")");
}

Qualifiers parse_qualifiers(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  Qualifiers qualifiers;
  while (!tokens.at_end() && qualifiers.type == Type::None) {
    if (tokens.accept_dotted("align"))
      qualifiers.alignment_bytes = parse_alignment(parser);
    else if (tokens.accept_dotted("v2"))
      qualifiers.vector_arity = 2;
    else if (tokens.accept_dotted("v4"))
      qualifiers.vector_arity = 4;
    else if (tokens.accept_dotted("attribute"))
      parse_attribute(parser, qualifiers);
    else
      qualifiers.type = parse_type(parser);
  }
  return qualifiers;
}

// A plain number, for in an expression the '>' after it would be an operator.
std::uint32_t parse_range_size(Parser& parser) {
  const Token token = parser.tokens.next();
  if (token.kind == TokenKind::Integer && token.bits >= 1 && token.bits <= max_registers_per_range)
    return static_cast<std::uint32_t>(token.bits);
  parser.tokens.fail(token.location, "the size of a register range must be a number from 1 to " +
                                         std::to_string(max_registers_per_range));
  return 1;
}

void place_in_function(Function& function, Variable& variable) {
  const bool is_local = variable.space == StateSpace::Local;
  if (!is_local && variable.space != StateSpace::Param) return;
  std::uint64_t& end = is_local ? function.local_frame_bytes : function.argument_area_bytes;
  variable.offset_bytes = align_up(end, variable.alignment_bytes);
  end = variable.offset_bytes + variable.size_bytes;
  if (is_local)
    function.local_frame_alignment_bytes =
        std::max(function.local_frame_alignment_bytes, variable.alignment_bytes);
}

// `.extern` may be followed by the definition: the same index then gets its contents.
bool redefine_extern(Parser& parser, Variable& variable) {
  const NameEntry* entry = parser.names.find(variable.name);
  if (entry == nullptr || parser.function_index != no_index ||
      entry->symbol.kind != SymbolKind::ModuleVariable)
    return false;
  Variable& earlier = parser.module.variables[entry->symbol.index];
  if (earlier.linkage != Linkage::Extern && variable.linkage != Linkage::Extern) return false;
  if (earlier.space != variable.space || earlier.type != variable.type)
    parser.tokens.fail(variable.location, quoted(variable.name) + " differs from its earlier declaration");
  if (variable.linkage != Linkage::Extern) earlier = std::move(variable);
  return true;
}

void add_variable(Parser& parser, Variable variable, std::string_view name) {
  if (parser.tokens.failed() || redefine_extern(parser, variable)) return;
  const bool in_function = parser.function_index != no_index;
  if (in_function) place_in_function(parser.function(), variable);
  std::vector<Variable>& variables = in_function ? parser.function().variables : parser.module.variables;
  const SymbolKind kind = in_function ? SymbolKind::FunctionVariable : SymbolKind::ModuleVariable;
  const Symbol symbol{kind, static_cast<std::uint32_t>(variables.size())};
  if (!parser.names.declare(name, {NameKind::Symbol, Type::None, symbol, no_index}))
    parser.tokens.fail(variable.location, quoted(name) + " is declared twice");
  variables.push_back(std::move(variable));
}

Variable parse_variable(Parser& parser, const Token& name, StateSpace space, Linkage linkage,
                        const Qualifiers& qualifiers) {
  Variable variable;
  variable.name = std::string(name.text);
  variable.location = name.location;
  variable.linkage = linkage;
  variable.space = space;
  variable.type = qualifiers.type;
  variable.vector_arity = qualifiers.vector_arity;
  variable.managed = qualifiers.managed;
  const std::uint32_t element_bytes = size_bytes(qualifiers.type) * qualifiers.vector_arity;
  variable.alignment_bytes =
      std::max(1U, qualifiers.alignment_bytes != 0 ? qualifiers.alignment_bytes : element_bytes);
  variable.dimensions = parse_dimensions(parser);
  variable.size_bytes = total_bytes(parser, variable.dimensions, element_bytes, name.location);
  if (parser.tokens.accept("=")) parse_initializer(parser, variable);
  return variable;
}

}  // namespace

Linkage parse_linkage(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  if (tokens.accept_dotted("visible")) return Linkage::Visible;
  if (tokens.accept_dotted("extern")) return Linkage::Extern;
  if (tokens.accept_dotted("weak")) return Linkage::Weak;
  if (tokens.accept_dotted("common")) return Linkage::Common;
  return Linkage::Internal;
}

Type parse_type(Parser& parser) {
  const Token& token = parser.tokens.peek();
  const Type type = token.kind == TokenKind::Dotted ? type_from_name(token.text) : Type::None;
  if (type == Type::None) parser.tokens.fail_expected("a type");
  parser.tokens.next();
  return type;
}

std::uint32_t parse_alignment(Parser& parser) {
  const SourceLocation location = parser.tokens.peek().location;
  const std::uint64_t bytes = parse_integer(parser, 1, max_alignment_bytes, "an alignment");
  if (!std::has_single_bit(bytes)) parser.tokens.fail(location, "an alignment must be a power of two");
  return static_cast<std::uint32_t>(bytes);
}

std::vector<std::uint64_t> parse_dimensions(Parser& parser) {
  constexpr std::size_t most = 16;
  std::vector<std::uint64_t> dimensions;
  TokenStream& tokens = parser.tokens;
  while (tokens.at("[")) {
    const SourceLocation location = tokens.next().location;
    const bool unknown = tokens.at("]");
    if (unknown && !dimensions.empty()) tokens.fail(location, "only the first dimension may be left out");
    if (dimensions.size() == most) tokens.fail(location, "too many dimensions");
    dimensions.push_back(unknown ? 0 : parse_integer(parser, 1, max_variable_bytes, "a dimension"));
    tokens.expect("]");
  }
  return dimensions;
}

std::uint64_t total_bytes(Parser& parser, const std::vector<std::uint64_t>& dimensions,
                          std::uint64_t element_bytes, SourceLocation location) {
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t dimension : dimensions) {
    if (dimension != 0 && bytes > max_variable_bytes / dimension) {
      parser.tokens.fail(location, "this array is larger than a terabyte");
      return 0;
    }
    bytes *= dimension;
  }
  return bytes;
}

void parse_variables(Parser& parser, Linkage linkage) {
  TokenStream& tokens = parser.tokens;
  const Token space_token = tokens.next();
  const StateSpace space = space_from_name(space_token.text);
  const Qualifiers qualifiers = parse_qualifiers(parser);
  do {
    const Token name = tokens.expect_word("the name of a variable");
    if (tokens.failed()) return;
    if (size_bytes(qualifiers.type) == 0)
      tokens.fail(name.location, "a variable in memory cannot be a predicate");
    add_variable(parser, parse_variable(parser, name, space, linkage, qualifiers), name.text);
  } while (tokens.accept(","));
  tokens.expect(";");
}

void parse_registers(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  tokens.next();
  const Qualifiers qualifiers = parse_qualifiers(parser);
  if (qualifiers.vector_arity != 1) tokens.fail(tokens.peek().location, "vector registers are not supported");
  do {
    const Token name = tokens.expect_word("the name of a register");
    if (tokens.failed()) return;
    bool is_new = false;
    if (tokens.accept("<")) {
      const std::uint32_t count = parse_range_size(parser);
      tokens.expect(">");
      is_new = parser.names.declare_range(name.text, count, qualifiers.type);
    } else {
      is_new = parser.names.declare(name.text, {NameKind::Register, qualifiers.type, {}, no_index});
    }
    if (!is_new) tokens.fail(name.location, quoted(name.text) + " is declared twice");
  } while (tokens.accept(","));
  tokens.expect(";");
}

}  // namespace firebreak::ptx
