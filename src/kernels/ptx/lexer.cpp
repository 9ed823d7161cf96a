// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace firebreak::ptx {
namespace {

// The function is our own, for the C library's depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_word(char c) { return (is_word_start(c) && c != '%') || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    tokens.reserve(source_.size() / 4 + 1);
    while (true) {
      if (!skip_blank()) {
        tokens.push_back(error("comment has no end"));
        break;
      }
      start_ = position_;
      location_ = {line_, static_cast<std::uint32_t>(position_ - line_start_ + 1)};
      if (position_ == source_.size()) break;
      tokens.push_back(token());
      if (tokens.back().kind == TokenKind::Error) break;
    }
    tokens.push_back(make(TokenKind::End));
    return tokens;
  }

 private:
  char at(std::size_t ahead) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }

  void advance() {
    if (source_[position_] == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    }
    ++position_;
  }

  // False: a comment that never ends; start_ and location_ are at its start.
  bool skip_blank() {
    while (position_ < source_.size()) {
      const char c = source_[position_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
        advance();
      } else if (c == '/' && at(1) == '/') {
        while (position_ < source_.size() && source_[position_] != '\n') ++position_;
      } else if (c == '/' && at(1) == '*') {
        if (!skip_block_comment()) return false;
      } else {
        return true;
      }
    }
    return true;
  }

  bool skip_block_comment() {
    start_ = position_;
    location_ = {line_, static_cast<std::uint32_t>(position_ - line_start_ + 1)};
    position_ += 2;
    while (position_ < source_.size()) {
      if (source_[position_] == '*' && at(1) == '/') {
        position_ += 2;
        return true;
      }
      advance();
    }
    return false;
  }

  Token token() {
    const char c = source_[position_];
    if (is_word_start(c) && !(c == '%' && !is_word(at(1)))) return word();
    if (c == '.') return dotted();
    if (is_digit(c)) return number();
    if (c == '"') return string();
    return punctuation();
  }

  Token word() {
    ++position_;
    while (is_word(at(0))) ++position_;
    return make(TokenKind::Word);
  }

  Token dotted() {
    ++position_;
    if (!is_word(at(0))) return error("a name must follow '.'");
    while (is_word(at(0)) || (at(0) == ':' && at(1) == ':' && is_word(at(2))))
      position_ += at(0) == ':' ? 2 : 1;
    Token result = make(TokenKind::Dotted);
    result.text.remove_prefix(1);
    return result;
  }

  Token string() {
    ++position_;
    while (position_ < source_.size() && source_[position_] != '"') {
      if (source_[position_] == '\n') return error("string has no end");
      position_ += source_[position_] == '\\' && at(1) != '\n' && position_ + 1 < source_.size() ? 2 : 1;
    }
    if (position_ == source_.size()) return error("string has no end");
    ++position_;
    Token result = make(TokenKind::String);
    result.text = result.text.substr(1, result.text.size() - 2);
    return result;
  }

  Token number() {
    const char marker = at(1);
    if (at(0) == '0' && (marker == 'f' || marker == 'F')) return hexadecimal_float(TokenKind::SingleFloat, 8);
    if (at(0) == '0' && (marker == 'd' || marker == 'D')) return hexadecimal_float(TokenKind::Float, 16);
    if (at(0) == '0' && (marker == 'x' || marker == 'X')) return integer(16, 2);
    if (at(0) == '0' && (marker == 'b' || marker == 'B')) return integer(2, 2);
    std::size_t ahead = 0;
    while (is_digit(at(ahead))) ++ahead;
    const bool is_float = (at(ahead) == '.' && is_digit(at(ahead + 1))) || at(ahead) == 'e' ||
                          at(ahead) == 'E' || (at(ahead) == '.' && !is_word(at(ahead + 1)));
    if (is_float) return decimal_float();
    return at(0) == '0' && ahead > 1 ? integer(8, 1) : integer(10, 0);
  }

  Token hexadecimal_float(TokenKind kind, std::size_t digits) {
    position_ += 2;
    const char* first = source_.data() + position_;
    while (is_word(at(0))) ++position_;
    std::uint64_t bits = 0;
    const auto [end, problem] = std::from_chars(first, source_.data() + position_, bits, 16);
    if (position_ - start_ != digits + 2 || problem != std::errc{} || end != source_.data() + position_)
      return error("0f takes 8 hexadecimal digits, 0d takes 16");
    Token result = make(kind);
    result.bits = bits;
    return result;
  }

  Token decimal_float() {
    double value = 0;
    const char* last = source_.data() + source_.size();
    const auto [end, problem] = std::from_chars(source_.data() + position_, last, value);
    if (problem != std::errc{}) return error("floating-point number out of range");
    position_ = static_cast<std::size_t>(end - source_.data());
    if (is_word(at(0))) return error("malformed number");
    Token result = make(TokenKind::Float);
    result.bits = std::bit_cast<std::uint64_t>(value);
    return result;
  }

  Token integer(int base, std::size_t prefix) {
    position_ += prefix;
    std::uint64_t bits = 0;
    const char* last = source_.data() + source_.size();
    const auto [end, problem] = std::from_chars(source_.data() + position_, last, bits, base);
    if (problem == std::errc::result_out_of_range) return error("integer does not fit in 64 bits");
    if (problem != std::errc{}) return error("malformed number");
    position_ = static_cast<std::size_t>(end - source_.data());
    const bool suffix = at(0) == 'U';
    if (suffix) ++position_;
    if (is_word(at(0))) return error("malformed number");
    Token result = make(TokenKind::Integer);
    result.bits = bits;
    result.is_unsigned = suffix || bits > static_cast<std::uint64_t>(INT64_MAX);
    return result;
  }

  Token punctuation() {
    const char first = at(0);
    if (first == '\0' || std::strchr("()[]{},;:@|!~+-*/%<>=&^?", first) == nullptr)
      return error("this character has no meaning in PTX");
    const char second = at(1);
    const bool doubled = std::strchr("<>=&|", first) != nullptr && second == first;
    const bool with_equals = std::strchr("<>!", first) != nullptr && second == '=';
    position_ += doubled || with_equals ? 2 : 1;
    return make(TokenKind::Punctuation);
  }

  Token make(TokenKind kind) const {
    Token result;
    result.kind = kind;
    result.text = source_.substr(start_, position_ - start_);
    result.location = location_;
    return result;
  }

  Token error(std::string_view message) const {
    Token result = make(TokenKind::Error);
    result.text = message;
    return result;
  }

  std::string_view source_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
  std::size_t start_ = 0;
  SourceLocation location_{1, 1};
};

}  // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace firebreak::ptx
