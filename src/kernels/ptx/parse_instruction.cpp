// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

// Two groups share this field.
bool rounded_already(const Modifiers& modifiers, ModifierGroup group) {
  return (group == ModifierGroup::Rounding || group == ModifierGroup::IntegerRounding) &&
         modifiers.rounding != Rounding::None;
}

// `.lo` may mean a comparison or a half: the variant says which groups are possible, and the first free one
// it is.
void apply_modifier(Parser& parser, const Token& word, ModifierGroups possible, Modifiers& modifiers) {
  bool known = false;
  bool taken = false;
  for (const ModifierWord& candidate : modifier_words()) {
    if (candidate.word != word.text) continue;
    known = true;
    if ((possible & bit(candidate.group)) == 0) continue;
    taken = modifier_given(modifiers, candidate.group) || rounded_already(modifiers, candidate.group);
    if (!taken) return set_modifier(modifiers, candidate.group, candidate.value);
  }
  const char* problem = taken   ? " is given twice, or beside another of its kind"
                        : known ? " does not belong to this instruction"
                                : " is not a modifier";
  parser.tokens.fail(word.location, quoted("." + std::string(word.text)) + problem);
}

struct OpcodeWords {
  Token opcode;
  std::vector<Token> rest;  ///< the dotted words after it
  std::string text;         ///< modifiers, all of them, as written
};

OpcodeWords read_words(Parser& parser) {
  OpcodeWords words;
  words.opcode = parser.tokens.expect_word("an instruction");
  words.text = std::string(words.opcode.text);
  while (parser.tokens.peek().kind == TokenKind::Dotted) {
    words.rest.push_back(parser.tokens.next());
    words.text += '.';
    words.text += words.rest.back().text;
  }
  if (parser.tokens.peek().kind == TokenKind::Error) parser.tokens.next();  // the parser complains
  return words;
}

void assign_types(Instruction& instruction, const std::array<Type, 4>& types) {
  instruction.type = types[0];
  instruction.source_type = types[1];
  instruction.more_types = {types[2], types[3]};
}

// Takes the types out of the words.
std::array<Type, 4> take_types(Parser& parser, std::vector<Token>& words) {
  std::array<Type, 4> types{};
  std::size_t count = 0;
  std::erase_if(words, [&](const Token& word) {
    const Type type = type_from_name(word.text);
    if (type == Type::None) return false;
    if (count == types.size()) parser.tokens.fail(word.location, "too many types");
    if (count < types.size()) types[count++] = type;
    return true;
  });
  return types;
}

void require_modifiers(Parser& parser, const InstructionVariant& variant, const Instruction& instruction) {
  for (std::size_t i = 0; i < modifier_group_count; ++i) {
    const auto group = static_cast<ModifierGroup>(i);
    if (group == ModifierGroup::Hint || (variant.required & bit(group)) == 0) continue;
    if (!modifier_given(instruction.modifiers, group))
      parser.tokens.fail(instruction.location,
                         quoted(variant.name) + " needs " + std::string(describe(group)));
  }
}

// Opcode, modifiers and types. False: something is wrong with them.
bool parse_opcode(Parser& parser, Instruction& instruction) {
  OpcodeWords words = read_words(parser);
  if (parser.tokens.failed()) return false;
  instruction.location = words.opcode.location;
  std::size_t name_length = 0;
  const InstructionVariant* named = find_by_prefix(words.text, name_length);
  if (named == nullptr) {
    parser.tokens.fail(words.opcode.location, "unknown instruction " + quoted(words.text));
    return false;
  }
  instruction.opcode = named->opcode;
  const auto words_in_name =
      std::count(words.text.begin(), words.text.begin() + static_cast<std::ptrdiff_t>(name_length), '.');
  words.rest.erase(words.rest.begin(), words.rest.begin() + words_in_name);
  const std::array<Type, 4> types = take_types(parser, words.rest);
  const InstructionVariant* variant = find_variant(named->opcode, types);
  if (variant == nullptr) {
    parser.tokens.fail(words.opcode.location, quoted(words.text) + " does not exist with these types");
    return false;
  }
  assign_types(instruction, types);
  for (const Token& word : words.rest)
    apply_modifier(parser, word, variant->allowed | variant->required, instruction.modifiers);
  require_modifiers(parser, *variant, instruction);
  return !parser.tokens.failed();
}

Operand parse_label(Parser& parser, std::size_t operand_index) {
  const Token name = parser.tokens.expect_word("a label");
  Operand operand;
  operand.kind = OperandKind::Label;
  operand.location = name.location;
  const auto instruction_index = static_cast<std::uint32_t>(parser.function().instructions.size());
  if (!parser.tokens.failed())
    parser.labels.use(
        {name.text, name.location, false, instruction_index, static_cast<std::uint32_t>(operand_index)});
  return operand;
}

void parse_operands(Parser& parser, Instruction& instruction) {
  constexpr std::size_t most = 8;
  TokenStream& tokens = parser.tokens;
  if (tokens.at(";")) return;
  do {
    const std::size_t index = instruction.operands.size();
    if (index == most) tokens.fail(tokens.peek().location, "too many operands");
    const bool is_label = instruction.opcode == Opcode::Bra;
    instruction.operands.push_back(is_label ? parse_label(parser, index) : parse_operand(parser));
  } while (tokens.accept(","));
}

Guard parse_guard(Parser& parser) {
  Guard guard;
  if (!parser.tokens.accept("@")) return guard;
  guard.negated = parser.tokens.accept("!");
  const Token name = parser.tokens.expect_word("a predicate");
  if (!parser.tokens.failed()) guard.register_index = use_register(parser, name);
  return guard;
}

void add_opaque_register(Instruction& instruction, std::uint32_t index, SourceLocation location) {
  Operand operand;
  operand.kind = OperandKind::Register;
  operand.register_index = index;
  operand.location = location;
  instruction.operands.push_back(std::move(operand));
}

// The operands of an instruction that nobody knows: only names and brackets mean something.
void read_opaque_operands(Parser& parser, Instruction& instruction, OpaqueInstruction& opaque) {
  constexpr std::size_t most_operands = 256;  // registers of an instruction; with more it may do anything
  TokenStream& tokens = parser.tokens;
  while (!tokens.at(";") && !tokens.at_end()) {
    const Token token = tokens.next();
    opaque.may_jump = opaque.may_jump || instruction.operands.size() == most_operands;
    if (opaque.may_jump) continue;
    if (token.text == "[") opaque.has_address = true;
    if (token.kind != TokenKind::Word) continue;
    const NameEntry* entry = parser.names.find(token.text);
    if (entry != nullptr && entry->kind == NameKind::Register)
      add_opaque_register(instruction, use_register(parser, token), token.location);
    else if (entry == nullptr && token.text != "_" && !token.text.starts_with('%'))
      opaque.may_jump = true;
    else if (entry != nullptr && entry->kind != NameKind::Symbol)
      opaque.may_jump = true;
  }
}

void parse_opaque(Parser& parser, Instruction& instruction) {
  const OpcodeWords words = read_words(parser);
  OpaqueInstruction opaque;
  opaque.text = words.text;
  bool shared = false;
  bool global = false;
  for (const Token& word : words.rest) {
    shared = shared || word.text.starts_with("shared");
    global = global || word.text == "global";
  }
  opaque.only_shared = shared && !global;
  instruction.opcode = Opcode::Opaque;
  instruction.location = words.opcode.location;
  read_opaque_operands(parser, instruction, opaque);
  instruction.opaque_index = static_cast<std::uint32_t>(parser.function().opaque_instructions.size());
  parser.function().opaque_instructions.push_back(std::move(opaque));
}

}  // namespace

void parse_instruction(Parser& parser) {
  Instruction instruction;
  instruction.guard = parse_guard(parser);
  const std::size_t start = parser.tokens.position();
  const bool fails_before = parser.tokens.failed();
  if (!parse_opcode(parser, instruction)) {
    if (!parser.keeps_unknown || fails_before) return;
    parser.tokens.rewind(start);
    Instruction opaque;
    opaque.guard = instruction.guard;
    parse_opaque(parser, opaque);
    parser.tokens.expect(";");
    parser.function().instructions.push_back(std::move(opaque));
    return;
  }
  if (instruction.opcode == Opcode::Call)
    parse_call(parser, instruction);
  else
    parse_operands(parser, instruction);
  parser.tokens.expect(";");
  parser.function().instructions.push_back(std::move(instruction));
}

}  // namespace firebreak::ptx
