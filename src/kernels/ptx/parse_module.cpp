// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

void parse_version(Parser& parser) {
  const Token number = parser.tokens.peek();
  const char* end = number.text.data() + number.text.size();
  Module& module = parser.module;
  const auto [dot, problem] = std::from_chars(number.text.data(), end, module.version_major);
  const bool has_minor =
      number.kind == TokenKind::Float && problem == std::errc{} && dot != end && *dot == '.';
  if (!has_minor || std::from_chars(dot + 1, end, module.version_minor).ptr != end)
    return parser.tokens.fail_expected("a version, as 8.0");
  parser.tokens.next();
}

// `.target sm_90a, texmode_independent, debug`
void parse_target(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  do {
    const Token word = tokens.expect_word("a target, as sm_80");
    if (!word.text.starts_with("sm_")) continue;
    const std::string_view digits = word.text.substr(3);
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parser.module.target_sm);
    if (problem != std::errc{})
      tokens.fail(word.location, "expected a target, as sm_80, not " + quoted(word.text));
    parser.module.target = std::string(word.text);
  } while (tokens.accept(","));
  if (parser.module.target.empty())
    tokens.fail(tokens.peek().location, "the target names no architecture, as sm_80");
}

void parse_address_size(Parser& parser) {
  const SourceLocation location = parser.tokens.peek().location;
  const std::uint64_t bits = parse_integer(parser, 32, 64, "an address size");
  if (bits != 32 && bits != 64) parser.tokens.fail(location, "an address size is 32 or 64");
  parser.module.address_size_bits = static_cast<std::uint32_t>(bits);
}

void parse_header(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  if (!tokens.accept_dotted("version")) return tokens.fail_expected("'.version', the first directive");
  parse_version(parser);
  if (!tokens.accept_dotted("target")) return tokens.fail_expected("'.target', the second directive");
  parse_target(parser);
  if (tokens.accept_dotted("address_size")) parse_address_size(parser);
}

void parse_statement(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  if (tokens.accept(";") || skip_directive(parser)) return;
  const Linkage linkage = parse_linkage(parser);
  if (tokens.at_dotted("entry") || tokens.at_dotted("func")) return parse_function(parser, linkage);
  const Token& token = tokens.peek();
  const StateSpace space = token.kind == TokenKind::Dotted ? space_from_name(token.text) : StateSpace::None;
  if (space == StateSpace::Global || space == StateSpace::Const || space == StateSpace::Shared)
    return parse_variables(parser, linkage);
  tokens.fail_expected("a function or variable");
}

// A directive without a semicolon: it goes to the end of its line.
void skip_line(TokenStream& tokens) {
  const std::uint32_t line = tokens.peek().location.line;
  while (!tokens.at_end() && tokens.peek().location.line == line) tokens.next();
}

void skip_section(TokenStream& tokens) {
  const SourceLocation location = tokens.next().location;
  while (!tokens.at_end() && !tokens.at("{")) tokens.next();
  while (!tokens.at_end() && !tokens.at("}")) tokens.next();
  if (!tokens.accept("}")) tokens.fail(location, "this section has no end");
}

// This skips to its semicolon, or the brace that closes it. A declared name is then unknown: nobody can use
// it. False means that there is no such end.
bool skip_statement(TokenStream& tokens) {
  while (!tokens.at_end() && !tokens.at(";") && !tokens.at("{")) tokens.next();
  const bool has_initial = tokens.at("{");
  if (has_initial)
    skip_braces(tokens);
  else
    tokens.next();
  if (has_initial) tokens.accept(";");
  return !tokens.failed() && !tokens.at_end();
}

}  // namespace

bool skip_directive(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  if (tokens.at_dotted("loc") || tokens.at_dotted("file")) {
    skip_line(tokens);
  } else if (tokens.at_dotted("section")) {
    skip_section(tokens);
  } else if (tokens.accept_dotted("pragma")) {
    do {
      if (tokens.peek().kind != TokenKind::String) tokens.fail_expected("a string");
      tokens.next();
    } while (tokens.accept(","));
    tokens.expect(";");
  } else {
    return false;
  }
  return true;
}

void parse_module(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  parse_header(parser);
  while (!tokens.at_end()) {
    const std::size_t start = tokens.position();
    parse_statement(parser);
    if (!tokens.failed() || !parser.keeps_unknown) continue;
    const Diagnostic problem = *tokens.failure();
    tokens.rewind(start);
    if (!skip_statement(tokens)) tokens.fail(problem.location, problem.message);
  }
}

}  // namespace firebreak::ptx
