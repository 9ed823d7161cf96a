// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

// `128`, `16, 8` or `4, 4, 4`; what is not given is 1.
std::array<std::uint32_t, 3> parse_extent(Parser& parser) {
  std::array<std::uint32_t, 3> extent{1, 1, 1};
  for (std::uint32_t& dimension : extent) {
    dimension = static_cast<std::uint32_t>(parse_integer(parser, 1, no_index - 1, "an extent"));
    if (!parser.tokens.accept(",")) break;
  }
  return extent;
}

struct CountDirective {
  std::string_view name;
  std::uint32_t LaunchBounds::*field;
};
constexpr std::array count_directives{
    CountDirective{"minnctapersm", &LaunchBounds::minnctapersm},
    CountDirective{"maxnctapersm", &LaunchBounds::maxnctapersm},
    CountDirective{"maxnreg", &LaunchBounds::maxnreg},
    CountDirective{"maxclusterrank", &LaunchBounds::maxclusterrank},
};

struct ExtentDirective {
  std::string_view name;
  std::array<std::uint32_t, 3> LaunchBounds::*field;
};
constexpr std::array extent_directives{
    ExtentDirective{"maxntid", &LaunchBounds::maxntid},
    ExtentDirective{"reqntid", &LaunchBounds::reqntid},
    ExtentDirective{"reqnctapercluster", &LaunchBounds::reqnctapercluster},
};

// Directives that say nothing to who runs the function, with one number or none.
constexpr std::array<std::string_view, 2> ignored_directives{"blocksareclusters", "abi_preserve"};

bool parse_bound(Parser& parser, LaunchBounds& bounds) {
  for (const CountDirective& directive : count_directives)
    if (parser.tokens.accept_dotted(directive.name)) {
      bounds.*directive.field =
          static_cast<std::uint32_t>(parse_integer(parser, 0, no_index - 1, "this bound"));
      return true;
    }
  for (const ExtentDirective& directive : extent_directives)
    if (parser.tokens.accept_dotted(directive.name)) {
      bounds.*directive.field = parse_extent(parser);
      return true;
    }
  return false;
}

void skip_attribute(TokenStream& tokens) {
  tokens.expect("(");
  while (!tokens.at_end() && !tokens.at(")") && !tokens.at("{")) tokens.next();
  tokens.expect(")");
  if (tokens.at(")")) tokens.next();  // .attribute(.unified(1, 2))
}

void parse_directives(Parser& parser, Function& function) {
  TokenStream& tokens = parser.tokens;
  while (tokens.peek().kind == TokenKind::Dotted) {
    const Token directive = tokens.peek();
    if (parse_bound(parser, function.bounds) || skip_directive(parser)) continue;
    tokens.next();
    bool ignored = false;
    for (const std::string_view name : ignored_directives) ignored = ignored || directive.text == name;
    if (directive.text == "noreturn")
      function.no_return = true;
    else if (directive.text == "explicitcluster")
      function.bounds.explicitcluster = true;
    else if (directive.text == "attribute")
      skip_attribute(tokens);
    else if (!ignored)
      tokens.fail(directive.location, "unknown directive " + quoted(directive.text));
    else if (at_constant(parser))
      parse_constant(parser);
  }
}

bool same_shape(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].space != b[i].space || a[i].size_bytes != b[i].size_bytes ||
        a[i].offset_bytes != b[i].offset_bytes)
      return false;
  return true;
}

// A function may be declared often and defined once; all of them have one index.
std::uint32_t place_function(Parser& parser, Function function, std::string_view name, bool defines) {
  TokenStream& tokens = parser.tokens;
  std::vector<Function>& functions = parser.module.functions;
  const NameEntry* entry = parser.names.find(name);
  if (entry == nullptr) {
    const Symbol symbol{SymbolKind::Function, static_cast<std::uint32_t>(functions.size())};
    parser.names.declare(name, {NameKind::Symbol, Type::None, symbol, no_index});
    functions.push_back(std::move(function));
    return symbol.index;
  }
  if (entry->symbol.kind != SymbolKind::Function) {
    tokens.fail(function.location, quoted(name) + " is declared twice");
    return no_index;
  }
  Function& earlier = functions[entry->symbol.index];
  const bool same = earlier.is_entry == function.is_entry &&
                    same_shape(earlier.parameters, function.parameters) &&
                    same_shape(earlier.return_parameters, function.return_parameters);
  if (!same) tokens.fail(function.location, quoted(name) + " differs from its earlier declaration");
  if (defines && earlier.has_body) tokens.fail(function.location, quoted(name) + " is defined twice");
  if (defines) {
    function.no_return = function.no_return || earlier.no_return;
    earlier = std::move(function);
  }
  return entry->symbol.index;
}

void parse_definition(Parser& parser, std::uint32_t index) {
  parser.function_index = index;
  Function& function = parser.function();
  function.has_body = true;
  parser.names.open();
  declare_parameters(parser, function.return_parameters, SymbolKind::ReturnParameter);
  declare_parameters(parser, function.parameters, SymbolKind::Parameter);
  const std::size_t start = parser.tokens.position();
  const std::size_t depth = parser.names.depth();
  parse_body(parser);
  if (parser.tokens.failed() && parser.keeps_unknown) {
    make_opaque(function, parser.tokens.failure()->message);
    parser.tokens.rewind(start);
    parser.names.close_to(depth);
    skip_braces(parser.tokens);
  }
  parser.names.close();
  parser.function_index = no_index;
}

}  // namespace

void make_opaque(Function& function, const std::string& why) {
  function.registers.clear();
  function.variables.clear();
  function.local_frame_bytes = function.argument_area_bytes = 0;
  function.calls.clear();
  function.prototypes.clear();
  function.call_targets.clear();
  function.branch_tables.clear();
  function.labels.clear();
  for (auto* const parameters : {&function.parameters, &function.return_parameters})
    for (Parameter& each : *parameters) each.register_index = no_index;
  function.opaque_instructions.assign(1, {"(" + why + ")", true, false, true});
  function.instructions.assign(1, {});
  function.instructions[0].opcode = Opcode::Opaque;
  function.instructions[0].opaque_index = 0;
  function.instructions[0].location = function.location;
}

void skip_braces(TokenStream& tokens) {
  std::size_t open = 0;
  do {
    if (tokens.at("{")) ++open;
    if (tokens.at("}")) --open;
    tokens.next();
  } while (open > 0 && !tokens.at_end());
  if (open > 0) tokens.fail_expected("'}'");
}

void parse_function(Parser& parser, Linkage linkage) {
  TokenStream& tokens = parser.tokens;
  Function function;
  function.linkage = linkage;
  function.is_entry = tokens.next().text == "entry";
  if (tokens.accept_dotted("attribute")) skip_attribute(tokens);
  if (!function.is_entry && tokens.at("(")) function.return_parameters = parse_parameters(parser, true);
  const Token name = tokens.expect_word("the name of a function");
  if (tokens.failed()) return;
  function.name = std::string(name.text);
  function.location = name.location;
  if (tokens.at("(")) function.parameters = parse_parameters(parser, !function.is_entry);
  function.parameter_bytes = block_bytes(function.parameters);
  function.return_parameter_bytes = block_bytes(function.return_parameters);
  parse_directives(parser, function);
  const bool defines = tokens.at("{");
  if (!defines) tokens.expect(";");
  if (tokens.failed()) return;
  const std::uint32_t index = place_function(parser, std::move(function), name.text, defines);
  if (defines && !tokens.failed()) parse_definition(parser, index);
}

}  // namespace firebreak::ptx
