// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/token_stream.h"

#include <cassert>

namespace firebreak::ptx {

TokenStream::TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  assert(!tokens_.empty() && tokens_.back().kind == TokenKind::End);
  end_ = tokens_.back();
}

const Token& TokenStream::peek(std::size_t ahead) const {
  return failure_ || position_ + ahead >= tokens_.size() ? end_ : tokens_[position_ + ahead];
}

Token TokenStream::next() {
  const Token token = peek();
  if (token.kind == TokenKind::Error) fail(token.location, std::string(token.text));
  if (!failure_ && position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenStream::at(std::string_view punctuation, std::size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::Punctuation && token.text == punctuation;
}

bool TokenStream::at_dotted(std::string_view word) const {
  return peek().kind == TokenKind::Dotted && peek().text == word;
}

bool TokenStream::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  next();
  return true;
}

bool TokenStream::accept_dotted(std::string_view word) {
  if (!at_dotted(word)) return false;
  next();
  return true;
}

bool TokenStream::expect(std::string_view punctuation) {
  if (accept(punctuation)) return true;
  fail_expected("'" + std::string(punctuation) + "'");
  return false;
}

Token TokenStream::expect_word(std::string_view what) {
  if (!at_word()) fail_expected(what);
  return next();
}

void TokenStream::fail(SourceLocation location, std::string message) {
  if (!failure_) failure_ = Diagnostic{location, std::move(message)};
}

void TokenStream::fail_expected(std::string_view what) {
  const Token& token = peek();
  if (token.kind == TokenKind::Error) return fail(token.location, std::string(token.text));
  const bool ended = token.kind == TokenKind::End;
  const std::string text = (token.kind == TokenKind::Dotted ? "." : "") + std::string(token.text);
  fail(token.location,
       "expected " + std::string(what) + " before " + (ended ? "the end of the file" : quoted(text)));
}

}  // namespace firebreak::ptx
