// SPDX-License-Identifier: Apache-2.0
/// Cuts PTX text into tokens. Internal to src/kernels/ptx.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

enum class TokenKind : std::uint8_t {
  End,
  Word,         ///< add, %r1, $L__BB0_1, _Z3fooPf
  Dotted,       ///< .f32, .shared::cta, .L2::128B; `text` is without the dot
  Integer,      ///< `bits`
  Float,        ///< 1.5, 0d3ff8000000000000: `bits` is the pattern of a double
  SingleFloat,  ///< 0f3fc00000: `bits` is the pattern of a float
  String,       ///< `text` is what stands between the quotes, escapes untouched
  Punctuation,  ///< one of ( ) [ ] { } , ; : @ | ! ~ + - * / % < > = & ^ ? and == != <= >= << >> && ||
  Error,        ///< no token; `text` says why. Nothing but End follows.
};

/// Texts are views into the source, which must outlive the tokens.
struct Token {
  std::string_view text;  ///< Error: static text that says why
  std::uint64_t bits = 0;
  SourceLocation location;
  TokenKind kind = TokenKind::End;
  bool is_unsigned = false;  ///< Integer: with the suffix U, or too large for a signed 64-bit one
};

/// The last token is End, always.
std::vector<Token> lex(std::string_view source);

}  // namespace firebreak::ptx
