// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/lexer.h"

#include <gtest/gtest.h>

#include <bit>

namespace firebreak::ptx {
namespace {

Token only(std::string_view source) {
  const std::vector<Token> tokens = lex(source);
  EXPECT_EQ(tokens.size(), 2U) << source;
  return tokens.front();
}

TEST(Lexer, CutsAnInstructionIntoWordsAndPlaces) {
  const std::vector<Token> tokens = lex("  @!%p1 ld.shared::cta.u32\n\t%r1, [s+4]; // done");
  std::string texts;
  for (const Token& token : tokens) texts += std::string(token.text) + " ";
  EXPECT_EQ(texts, "@ ! %p1 ld shared::cta u32 %r1 , [ s + 4 ] ;  ");
  EXPECT_EQ(tokens[0].location.line, 1U);
  EXPECT_EQ(tokens[0].location.column, 3U);
  EXPECT_EQ(tokens[6].location.line, 2U);
  EXPECT_EQ(tokens[6].location.column, 2U);
}

TEST(Lexer, ReadsIntegersOfEveryBase) {
  EXPECT_EQ(only("42").bits, 42U);
  EXPECT_EQ(only("0x2A").bits, 42U);
  EXPECT_EQ(only("052").bits, 42U);
  EXPECT_EQ(only("0b101010").bits, 42U);
  EXPECT_EQ(only("0").bits, 0U);
  EXPECT_FALSE(only("42").is_unsigned);
  EXPECT_TRUE(only("42U").is_unsigned);
  EXPECT_TRUE(only("18446744073709551615").is_unsigned);
}

TEST(Lexer, ReadsFloatingPointWithItsBits) {
  EXPECT_EQ(only("0f3F800000").kind, TokenKind::SingleFloat);
  EXPECT_EQ(only("0f3F800000").bits, 0x3f800000U);
  EXPECT_EQ(only("0D3FF0000000000000").bits, std::bit_cast<std::uint64_t>(1.0));
  EXPECT_EQ(only("1.5").bits, std::bit_cast<std::uint64_t>(1.5));
  EXPECT_EQ(only("2.5e-3").bits, std::bit_cast<std::uint64_t>(2.5e-3));
  EXPECT_EQ(only("1e3").kind, TokenKind::Float);
}

TEST(Lexer, SaysWhatIsNoToken) {
  const auto message = [](std::string_view source) {
    const std::vector<Token> tokens = lex(source);
    const Token& error = tokens[tokens.size() - 2];
    return error.kind == TokenKind::Error ? std::string(error.text) : "none";
  };
  EXPECT_EQ(message("99999999999999999999"), "integer does not fit in 64 bits");
  EXPECT_EQ(message("0x"), "malformed number");
  EXPECT_EQ(message("12ab"), "malformed number");
  EXPECT_EQ(message("0f123"), "0f takes 8 hexadecimal digits, 0d takes 16");
  EXPECT_EQ(message("a /* b"), "comment has no end");
  EXPECT_EQ(message("\"a\nb\""), "string has no end");
  EXPECT_EQ(message("a . b"), "a name must follow '.'");
  EXPECT_EQ(message("a # b"), "this character has no meaning in PTX");
  EXPECT_EQ(message(std::string_view("a\0b", 3)), "this character has no meaning in PTX");
  EXPECT_EQ(message("\x80"), "this character has no meaning in PTX");
}

TEST(Lexer, EndsWithOneEndTokenBehindTheSource) {
  const std::vector<Token> tokens = lex("a\n  ");
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens.back().kind, TokenKind::End);
  EXPECT_EQ(tokens.back().location.line, 2U);
  EXPECT_EQ(tokens.back().location.column, 3U);
}

}  // namespace
}  // namespace firebreak::ptx
