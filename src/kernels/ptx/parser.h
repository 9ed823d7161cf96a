// SPDX-License-Identifier: Apache-2.0
/// The recursive-descent parser: its state, and one function a construct, grouped by file. Internal to
/// src/kernels/ptx.
///
/// A function that fails records the complaint in `tokens` and returns anything: from then on all tokens are
/// End, and who looks at the result asks `tokens.failed()` first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ptx/ir.h"
#include "kernels/ptx/names.h"
#include "kernels/ptx/token_stream.h"

namespace firebreak::ptx {

// Bounds on what a few bytes of source can ask for.
inline constexpr std::uint32_t max_block_depth = 64;
inline constexpr std::uint32_t max_expression_depth = 64;
inline constexpr std::uint32_t max_registers_per_range = 1U << 20;
inline constexpr std::uint64_t max_variable_bytes = 1ULL << 40;
inline constexpr std::uint64_t max_initial_bytes_per_module = 256ULL << 20;
inline constexpr std::uint32_t max_alignment_bytes = 1U << 20;
inline constexpr std::size_t max_vector_elements = 32;

struct Parser {
  explicit Parser(std::vector<Token> all_tokens) : tokens(std::move(all_tokens)) {}

  Function& function() { return module.functions[function_index]; }

  TokenStream tokens;
  Module module;
  NameScopes names;
  LabelScopes labels;
  std::uint32_t function_index = no_index;  ///< function whose body this is; no_index at module level
  std::uint64_t initial_bytes = 0;          ///< size of all variables
  bool keeps_unknown = false;               ///< what is not known becomes Opcode::Opaque
};

/// A number, or what an expression of integers comes to.
struct Constant {
  std::uint64_t bits = 0;  ///< integer, pattern of a double, or (is_single) pattern of a float
  bool is_unsigned = false;
  bool is_float = false;
  bool is_single = false;
  SourceLocation location;
};

// parse_module.cpp
void parse_module(Parser& parser);
/// .pragma, .loc, .file, .section: read over. False: the next token is none of them.
bool skip_directive(Parser& parser);

// parse_constant.cpp
bool at_constant(const Parser& parser);
Constant parse_constant(Parser& parser);
/// A constant that is an integer in [lowest, highest]; `what` names it in the complaint.
std::uint64_t parse_integer(Parser& parser, std::uint64_t lowest, std::uint64_t highest,
                            std::string_view what);

// parse_declaration.cpp
/// .visible, .extern, .weak, .common, or nothing.
Linkage parse_linkage(Parser& parser);
/// Parses from the state space to the semicolon: `.shared .align 4 .b8 tile[64], x;`
void parse_variables(Parser& parser, Linkage linkage);
/// `.reg .b32 %r<5>, x;`
void parse_registers(Parser& parser);
/// The dot and name of a fundamental type.
Type parse_type(Parser& parser);
/// The number after `.align`.
std::uint32_t parse_alignment(Parser& parser);
/// `[4][2]`, `[]` or nothing.
std::vector<std::uint64_t> parse_dimensions(Parser& parser);
/// Elements times the size of one; complains about more than max_variable_bytes.
std::uint64_t total_bytes(Parser& parser, const std::vector<std::uint64_t>& dimensions,
                          std::uint64_t element_bytes, SourceLocation location);
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// parse_initializer.cpp
/// Parses what follows the equals sign; gives `name[]` its size.
void parse_initializer(Parser& parser, Variable& variable);

// parse_function.cpp
/// This stands in the place of a body that cannot be read: one instruction of which nothing is known, which
/// may do anything.
void make_opaque(Function& function, const std::string& why);
/// This goes from the next brace to the one that closes it.
void skip_braces(TokenStream& tokens);
/// Parses from `.entry` or `.func` to the end of the body or the semicolon.
void parse_function(Parser& parser, Linkage linkage);

// parse_parameters.cpp
/// `(.param .u64 a, .reg .b32 b)`: with offsets; names are declared in the innermost scope where
/// `symbol_kind` is not None.
std::vector<Parameter> parse_parameters(Parser& parser, bool registers_allowed);
/// Declares the names of a function's parameters for its body, and numbers the registers among them. The
/// parameters must stay where they are until the scope closes: their names are not copied.
void declare_parameters(Parser& parser, std::vector<Parameter>& parameters, SymbolKind kind);
/// Bytes of the packed block.
std::uint64_t block_bytes(const std::vector<Parameter>& parameters);

// parse_body.cpp
/// Parses from the opening to the closing brace.
void parse_body(Parser& parser);

// parse_instruction.cpp
/// Parses from the guard or the opcode to the semicolon.
void parse_instruction(Parser& parser);

// parse_call.cpp
/// Parses what follows `call` and its modifiers, up to the semicolon.
void parse_call(Parser& parser, Instruction& instruction);
/// `name: .callprototype ...;` and `name: .calltargets ...;` from the directive on.
void parse_prototype(Parser& parser, const Token& name);
void parse_call_targets(Parser& parser, const Token& name);

// parse_operand.cpp
Operand parse_operand(Parser& parser);
/// The register that a name stands for, with an index; complains if it is no register.
std::uint32_t use_register(Parser& parser, const Token& name);

// special_registers.cpp
/// "%tid" and "x"; None when there is no such register. `component` is empty where none was written.
SpecialRegister special_register_from_name(std::string_view name, std::string_view component);
/// "%tid.x"
std::string_view name_of(SpecialRegister special);

}  // namespace firebreak::ptx
