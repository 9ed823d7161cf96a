// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace firebreak::tidy {
namespace {

/// How a word that is followed by "(" is used.
enum class Use { Call, GlobalCall, Declaration, Member, Qualified };

constexpr std::string_view blanks = " \t\n";

bool is_followed_by_parenthesis(std::string_view code, const Word& word) {
  const std::size_t next = code.find_first_not_of(blanks, word.offset + word.text.size());
  return next != std::string_view::npos && code[next] == '(';
}

/// The identifier that ends right at the end of `before`, or nothing.
std::string_view last_word(std::string_view before) {
  std::size_t start = before.size();
  while (start > 0 && is_word_character(before[start - 1])) --start;
  return before.substr(start);
}

bool is_statement_keyword(std::string_view word) {
  static constexpr std::array<std::string_view, 8> keywords{"return", "co_return", "co_await", "co_yield",
                                                            "throw",  "else",      "do",       "case"};
  return std::find(keywords.begin(), keywords.end(), word) != keywords.end();
}

Use use_of(std::string_view code, const Word& word) {
  std::string_view before = code.substr(0, word.offset);
  before = before.substr(0, before.find_last_not_of(blanks) + 1);
  if (before.ends_with("::")) {
    before.remove_suffix(2);
    const std::string_view scope = last_word(before);
    if (scope == "std") return Use::GlobalCall;
    return scope.empty() && !before.ends_with(">") ? Use::GlobalCall : Use::Qualified;
  }
  if (before.ends_with(".") || before.ends_with("->")) return Use::Member;
  if (before.ends_with("&&") || before.ends_with("||")) return Use::Call;
  const std::string_view previous = last_word(before);
  if (!previous.empty()) return is_statement_keyword(previous) ? Use::Call : Use::Declaration;
  const bool ends_a_type = before.ends_with(">") || before.ends_with("*") || before.ends_with("&");
  return ends_a_type || before.ends_with("~") ? Use::Declaration : Use::Call;
}

bool declares(std::string_view code, std::string_view name) {
  for (std::size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const Word word{code.substr(at, name.size()), at};
    const bool whole = (at == 0 || !is_word_character(code[at - 1])) &&
                       (at + name.size() == code.size() || !is_word_character(code[at + name.size()]));
    if (!whole || !is_followed_by_parenthesis(code, word)) continue;
    const Use use = use_of(code, word);
    if (use == Use::Declaration) return true;
  }
  return false;
}

}  // namespace

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<Word> words_of(std::string_view code) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < code.size();) {
    if (!is_word_character(code[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < code.size() && is_word_character(code[end])) ++end;
    words.push_back({code.substr(at, end - at), at});
    at = end;
  }
  return words;
}

std::vector<Word> find_calls(std::string_view code, std::string_view companion,
                             const std::vector<std::string_view>& names) {
  std::vector<Word> calls;
  for (const Word& word : words_of(code)) {
    if (std::find(names.begin(), names.end(), word.text) == names.end()) continue;
    if (!is_followed_by_parenthesis(code, word)) continue;
    const Use use = use_of(code, word);
    const bool ours = use == Use::Call && (declares(code, word.text) || declares(companion, word.text));
    if (use == Use::GlobalCall || (use == Use::Call && !ours)) calls.push_back(word);
  }
  return calls;
}

}  // namespace firebreak::tidy
