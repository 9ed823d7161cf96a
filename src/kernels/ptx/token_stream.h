// SPDX-License-Identifier: Apache-2.0
/// The parser's view of the tokens, and its first complaint. Internal to src/kernels/ptx.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ptx/diagnostic.h"
#include "kernels/ptx/lexer.h"

namespace firebreak::ptx {

/// The tokens of a source. After the first fail() every token is End, so that every loop of the parser comes
/// to its end; later failures are consequences and are dropped.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens);

  const Token& peek(std::size_t ahead = 0) const;
  Token next();
  bool at_end() const { return peek().kind == TokenKind::End; }

  bool at(std::string_view punctuation, std::size_t ahead = 0) const;
  bool at_dotted(std::string_view word) const;
  bool at_word() const { return peek().kind == TokenKind::Word; }
  bool accept(std::string_view punctuation);
  bool accept_dotted(std::string_view word);

  /// Fails unless the next token is this one.
  bool expect(std::string_view punctuation);
  /// Fails unless the next token is a word; `what` says which ("the name of a register").
  Token expect_word(std::string_view what);

  /// Records the first complaint.
  void fail(SourceLocation location, std::string message);
  /// The same about the next token: "expected <what> before <token>".
  void fail_expected(std::string_view what);
  bool failed() const { return failure_.has_value(); }
  const Finding& failure() const { return failure_; }

  /// These serve a second attempt: where the next token is, and back to there with whatever went wrong
  /// forgotten.
  std::size_t position() const { return position_; }
  void rewind(std::size_t position) {
    position_ = position;
    failure_.reset();
  }

 private:
  std::vector<Token> tokens_;
  Token end_;
  std::size_t position_ = 0;
  Finding failure_;
};

}  // namespace firebreak::ptx
