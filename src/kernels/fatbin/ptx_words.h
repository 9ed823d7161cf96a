// SPDX-License-Identifier: Apache-2.0
/// PTX as words. Source: PTX ISA 9.0, "Syntax".
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace firebreak::fatbin {

namespace words {

/// A character is one of these: a program's text has millions.
enum : unsigned char { in_word = 1, is_space = 2, begins_skipped = 4 };
inline constexpr std::array<unsigned char, 256> kinds = [] {
  std::array<unsigned char, 256> made{};
  for (int c = '0'; c <= '9'; ++c) made[static_cast<std::size_t>(c)] = in_word;
  for (int c = 'a'; c <= 'z'; ++c) made[static_cast<std::size_t>(c)] = in_word;
  for (int c = 'A'; c <= 'Z'; ++c) made[static_cast<std::size_t>(c)] = in_word;
  for (const char c : {'_', '$', '%'}) made[static_cast<std::size_t>(c)] = in_word;
  for (const char c : {' ', '\t', '\n', '\r', '\v', '\f'}) made[static_cast<std::size_t>(c)] = is_space;
  for (const char c : {'/', '"'}) made[static_cast<std::size_t>(c)] = begins_skipped;
  return made;
}();
inline bool is_a(char c, unsigned char kind) { return (kinds[static_cast<unsigned char>(c)] & kind) != 0; }

}  // namespace words

inline bool is_in_word(char c) { return words::is_a(c, words::in_word); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Words, and single characters between them. ".global" is a word, "ld.global" are two: "ld" and ".global",
/// which follows without a space. Comments and texts in quotes are nothing.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  /// Empty: the end.
  std::string_view next() {
    skip();
    if (at_ >= text_.size()) return {};
    const std::size_t begin = at_;
    const bool is_word =
        is_in_word(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && is_in_word(text_[at_ + 1]));
    ++at_;
    while (is_word && at_ < text_.size() && is_in_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  /// The last word followed the one before it without anything between.
  bool was_joined() const { return was_joined_; }
  /// A comment or a text had no end.
  bool is_torn() const { return is_torn_; }

 private:
  void skip() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && skip_one()) {
    }
    was_joined_ = at_ == begin && at_ > 0;
  }

  bool skip_one() {
    if (words::is_a(text_[at_], words::is_space)) {
      ++at_;
      return true;
    }
    if (!words::is_a(text_[at_], words::begins_skipped)) return false;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//")) return skip_to("\n", 2);
    if (rest.starts_with("/*")) return skip_to("*/", 2);
    if (rest[0] == '"') return skip_to("\"", 1);
    return false;
  }
  bool skip_to(std::string_view end, std::size_t from) {
    const std::size_t found = text_.find(end, at_ + from);
    is_torn_ = is_torn_ || (found == std::string_view::npos && end != "\n");
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool was_joined_ = false;
  bool is_torn_ = false;
};

}  // namespace firebreak::fatbin
