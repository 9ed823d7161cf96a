// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

void parse_branch_table(Parser& parser, const Token& name) {
  TokenStream& tokens = parser.tokens;
  Function& function = parser.function();
  const auto table = static_cast<std::uint32_t>(function.branch_tables.size());
  function.branch_tables.push_back({std::string(name.text), {}});
  do {
    const Token label = tokens.expect_word("a label");
    if (tokens.failed()) return;
    std::vector<std::uint32_t>& targets = function.branch_tables[table].targets;
    parser.labels.use({label.text, label.location, true, table, static_cast<std::uint32_t>(targets.size())});
    targets.push_back(no_index);
  } while (tokens.accept(","));
  tokens.expect(";");
  if (!parser.names.declare(name.text, {NameKind::BranchTable, Type::None, {}, table}))
    tokens.fail(name.location, quoted(name.text) + " is declared twice");
}

// `name:` is a label, or the name of what follows.
void parse_labelled(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  const Token name = tokens.next();
  tokens.expect(":");
  if (tokens.accept_dotted("branchtargets")) return parse_branch_table(parser, name);
  if (tokens.accept_dotted("callprototype")) return parse_prototype(parser, name);
  if (tokens.accept_dotted("calltargets")) return parse_call_targets(parser, name);
  Function& function = parser.function();
  const auto target = static_cast<std::uint32_t>(function.instructions.size());
  function.labels.push_back({std::string(name.text), target, name.location});
  if (!parser.labels.define(name.text, target))
    tokens.fail(name.location, "label " + quoted(name.text) + " is defined twice");
}

void parse_declaration(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  if (skip_directive(parser)) return;
  if (tokens.at_dotted("reg")) return parse_registers(parser);
  const Linkage linkage = parse_linkage(parser);
  const StateSpace space = space_from_name(tokens.peek().text);
  if (tokens.peek().kind != TokenKind::Dotted || space == StateSpace::None || space == StateSpace::Reg)
    return tokens.fail_expected("a declaration");
  parse_variables(parser, linkage);
}

void open_block(Parser& parser) {
  parser.tokens.expect("{");
  parser.names.open();
  parser.labels.open();
}

void close_block(Parser& parser) {
  parser.tokens.expect("}");
  parser.labels.close(parser.function());
  parser.names.close();
}

}  // namespace

void parse_body(Parser& parser) {
  TokenStream& tokens = parser.tokens;
  parser.labels = LabelScopes{};
  open_block(parser);
  std::uint32_t depth = 1;
  while (depth > 0 && !tokens.at_end()) {
    const Token& token = tokens.peek();
    if (tokens.at("{")) {
      if (++depth > max_block_depth) return tokens.fail(token.location, "blocks are nested too deeply");
      open_block(parser);
    } else if (tokens.at("}")) {
      --depth;
      close_block(parser);
    } else if (token.kind == TokenKind::Dotted) {
      parse_declaration(parser);
    } else if (token.kind == TokenKind::Word && tokens.at(":", 1)) {
      parse_labelled(parser);
    } else if (token.kind == TokenKind::Word || tokens.at("@")) {
      parse_instruction(parser);
    } else if (!tokens.accept(";")) {
      tokens.fail_expected("an instruction");
    }
  }
  if (depth > 0) return tokens.fail_expected("'}'");
  if (const Finding undefined = parser.labels.undefined())
    tokens.fail(undefined->location, undefined->message);
}

}  // namespace firebreak::ptx
