// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/function_scanner.h"

#include <algorithm>
#include <array>

#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

/// The kind of what an opening brace begins.
enum class Scope { Container, Function, Initializer };

constexpr std::string_view blanks = " \t\n";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// The index after the bracket that matches text[0], or the end.
std::size_t after_bracket(std::string_view text, char open, char close) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i + 1;
  }
  return text.size();
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !is_word_character(text[word.size()]));
}

/// Drops `template <...>`, `[[...]]` and `public:` from the front.
std::string_view declaration_of(std::string_view head) {
  static constexpr std::array<std::string_view, 3> access{"public", "protected", "private"};
  for (head = trim(head);;) {
    const std::string_view before = head;
    if (starts_with_word(head, "template")) {
      const std::size_t open = head.find('<');
      if (open != std::string_view::npos)
        head = trim(head.substr(open + after_bracket(head.substr(open), '<', '>')));
    }
    if (head.starts_with("[[")) head = trim(head.substr(after_bracket(head, '[', ']')));
    for (const auto word : access) {
      if (!starts_with_word(head, word)) continue;
      const std::string_view rest = trim(head.substr(word.size()));
      if (rest.starts_with(":")) head = trim(rest.substr(1));
    }
    if (head == before) return head;
  }
}

/// The head with everything inside parentheses replaced by "()".
std::string without_parameters(std::string_view head) {
  std::string flat;
  int depth = 0;
  for (const char c : head) {
    if (c == ')' && depth > 0) --depth;
    if (depth == 0) flat += c;
    if (c == '(') ++depth;
  }
  return flat;
}

bool opens_lambda(std::string_view flat) {
  const std::size_t close = flat.rfind(']');
  if (close == std::string_view::npos || flat.substr(0, close).find('[') == std::string_view::npos)
    return false;
  const std::string_view rest = trim(flat.substr(close + 1));
  return rest.empty() || rest.starts_with("(");
}

/// An assignment outside parentheses; comparison and assignment operators being defined are none.
bool assigns(std::string_view flat) {
  const std::size_t name = flat.find("operator");
  const std::string_view before = name == std::string_view::npos ? flat : flat.substr(0, name);
  return before.find('=') != std::string_view::npos;
}

bool is_container(std::string_view declaration, std::string_view flat) {
  static constexpr std::array<std::string_view, 5> words{"namespace", "class", "struct", "union", "enum"};
  if (starts_with_word(declaration, "inline")) declaration = trim(declaration.substr(6));
  if (starts_with_word(declaration, "typedef")) declaration = trim(declaration.substr(7));
  if (starts_with_word(declaration, "extern") && flat.find('(') == std::string_view::npos) return true;
  const bool named =
      std::any_of(words.begin(), words.end(), [&](auto word) { return starts_with_word(declaration, word); });
  const bool has_parameters =
      flat.find('(') != std::string_view::npos && flat.find("alignas") == std::string_view::npos;
  return named && !has_parameters;
}

/// The brace of `: member_{value}` before a constructor's body.
bool is_member_initializer(std::string_view flat) {
  const std::size_t parameters = flat.find(')');
  if (parameters == std::string_view::npos) return false;
  std::string_view rest = flat.substr(parameters + 1);
  const std::size_t colon = rest.find(':');
  const bool scope = colon != std::string_view::npos && rest.substr(colon).starts_with("::");
  if (colon == std::string_view::npos || scope) return false;
  rest = trim(rest);
  return is_word_character(rest.back()) || rest.back() == '>';
}

Scope scope_of(std::string_view head, Scope around) {
  const std::string_view declaration = declaration_of(head);
  const std::string flat = without_parameters(declaration);
  if (opens_lambda(flat)) return Scope::Function;
  if (around == Scope::Initializer) return Scope::Initializer;
  if (is_container(declaration, flat)) return Scope::Container;
  return flat.find('(') != std::string::npos && !assigns(flat) ? Scope::Function : Scope::Initializer;
}

std::string name_of(std::string_view declaration) {
  std::size_t end = declaration.find('(');
  end = std::min(end, declaration.size());
  if (end > 0) end = declaration.find_last_not_of(blanks, end - 1) + 1;
  std::size_t start = end;
  while (start > 0 && (is_word_character(declaration[start - 1]) || declaration[start - 1] == ':' ||
                       declaration[start - 1] == '~')) {
    --start;
  }
  return start == end ? std::string("function") : std::string(declaration.substr(start, end - start));
}

/// Reads one level of braces after the other; function bodies are skipped whole.
class Scanner {
 public:
  explicit Scanner(std::string_view code) : code_(code) {}

  std::vector<FunctionSpan> scan() {
    while (at_ < code_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    const char c = code_[at_];
    if (c == '{') return open();
    if (c == '}') {
      if (!scopes_.empty()) scopes_.pop_back();
      head_ = at_ + 1;
    } else if (c == ';' || (c == ',' && around() == Scope::Initializer)) {
      head_ = at_ + 1;
    } else if (c == '(') {
      at_ = std::min(at_ + after_bracket(code_.substr(at_), '(', ')'), code_.size()) - 1;
    }
    ++at_;
  }

  Scope around() const { return scopes_.empty() ? Scope::Container : scopes_.back(); }

  void open() {
    const std::string_view head = code_.substr(head_, at_ - head_);
    const std::size_t end = at_ + after_bracket(code_.substr(at_), '{', '}');
    const bool in_container = around() == Scope::Container;
    if (in_container && is_member_initializer(without_parameters(declaration_of(head)))) {
      at_ = end;
      return;
    }
    const Scope scope = scope_of(head, around());
    if (scope != Scope::Function) {
      scopes_.push_back(scope);
      head_ = ++at_;
      return;
    }
    const std::string_view declaration = declaration_of(head);
    const std::size_t signature = static_cast<std::size_t>(declaration.data() - code_.data());
    found_.push_back({name_of(declaration), signature, end - 1});
    head_ = at_ = end;
  }

  std::string_view code_;
  std::vector<Scope> scopes_;
  std::vector<FunctionSpan> found_;
  std::size_t head_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<FunctionSpan> find_functions(std::string_view code) { return Scanner(code).scan(); }

}  // namespace firebreak::tidy
