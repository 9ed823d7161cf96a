// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/source_text.h"

#include <algorithm>
#include <cctype>

namespace firebreak::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Walks the source once, handing every character to one of the views.
class Splitter {
 public:
  explicit Splitter(std::string_view source) : source_(source) {
    views_.code.assign(source.size(), ' ');
    views_.comments.assign(source.size(), ' ');
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\n') views_.code[i] = views_.comments[i] = '\n';
    }
  }

  SourceViews split() {
    while (at_ < source_.size()) step();
    return std::move(views_);
  }

 private:
  void step() {
    if (starts_with("//")) return line_comment();
    if (starts_with("/*")) return comment(std::min(source_.find("*/", at_ + 2), source_.size() - 2) + 2);
    if (source_[at_] == '"') return starts_raw_string() ? raw_string() : quoted('"');
    if (source_[at_] == '\'' && !(at_ > 0 && is_digit_separator())) return quoted('\'');
    keep(at_++);
  }

  bool starts_with(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  void keep(std::size_t index) { views_.code[index] = source_[index]; }

  void comment(std::size_t end) {
    for (end = std::min(end, source_.size()); at_ < end; ++at_) views_.comments[at_] = source_[at_];
  }

  /// A backslash before the line's end continues the comment.
  void line_comment() {
    std::size_t end = source_.find('\n', at_);
    while (end != std::string_view::npos && source_[end - 1] == '\\') end = source_.find('\n', end + 1);
    comment(end);
  }

  /// The quote in 1'000 or 0xff'ff, as opposed to the prefix in u'x'.
  bool is_digit_separator() const {
    std::size_t start = at_;
    while (start > 0 && (is_word(source_[start - 1]) || source_[start - 1] == '\'')) --start;
    return start < at_ && std::isdigit(static_cast<unsigned char>(source_[start])) != 0;
  }

  bool starts_raw_string() const {
    if (at_ == 0 || source_[at_ - 1] != 'R') return false;
    std::size_t start = at_ - 1;
    while (start > 0 && is_word(source_[start - 1])) --start;
    const std::string_view prefix = source_.substr(start, at_ - start);
    return prefix == "R" || prefix == "LR" || prefix == "uR" || prefix == "UR" || prefix == "u8R";
  }

  void raw_string() {
    const std::size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) return keep(at_++);
    const std::string closing = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t close = source_.find(closing, open);
    keep(at_);
    at_ = close == std::string_view::npos ? source_.size() : close + closing.size();
    if (close != std::string_view::npos) keep(at_ - 1);
  }

  /// An unfinished literal ends with its line.
  void quoted(char quote) {
    keep(at_++);
    while (at_ < source_.size() && source_[at_] != quote && source_[at_] != '\n') {
      at_ += source_[at_] == '\\' ? 2 : 1;
    }
    if (at_ < source_.size()) keep(at_++);
    at_ = std::min(at_, source_.size());
  }

  std::string_view source_;
  SourceViews views_;
  std::size_t at_ = 0;
};

}  // namespace

SourceViews split_views(std::string_view source) { return Splitter(source).split(); }

std::string without_directives(std::string_view source, std::string_view code) {
  std::string result(code);
  bool in_directive = false;
  for (std::size_t line = 0; line < code.size();) {
    const std::size_t end = std::min(code.find('\n', line), code.size());
    const std::size_t first = code.find_first_not_of(" \t", line);
    if (!in_directive) in_directive = first < end && code[first] == '#';
    if (in_directive)
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(line),
                result.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    in_directive = in_directive && end > line && source[end - 1] == '\\';
    line = end + 1;
  }
  return result;
}

}  // namespace firebreak::tidy
