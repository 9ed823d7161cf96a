// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

constexpr std::size_t longest = 120;

/// UTF-8's later bytes are no characters of their own.
std::size_t characters(std::string_view line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// One word, or one link, behind at most a list's mark: nothing can be wrapped there.
bool is_one_piece(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" -*");
  if (begin == std::string_view::npos) return true;
  const std::string_view rest = line.substr(begin);
  const std::size_t text = rest.find("](");
  const std::size_t space =
      rest.find(' ', rest.starts_with("[") && text != std::string_view::npos ? text : 0);
  return space == std::string_view::npos;
}

/// Tells whether Markdown shows the line as it is: a table's row, or code.
class Markdown {
 public:
  bool shows_as_it_is(std::string_view line) {
    const bool fence = line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("```");
    if (fence) in_code_ = !in_code_;
    return in_code_ || fence || line.starts_with("|") || line.starts_with("    ") || is_one_piece(line);
  }

 private:
  bool in_code_ = false;
};

}  // namespace

std::vector<Finding> check_line_length(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    const bool markdown = file.path().ends_with(".md");
    if (!markdown && file.kind() != FileKind::CMake) continue;
    Markdown state;
    int number = 0;
    std::string_view rest = file.text();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++number;
      const bool excused = markdown && state.shows_as_it_is(line);
      if (!excused && characters(line) > longest)
        findings.push_back({file.path(), number, "line-length", "longer than 120 characters"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
