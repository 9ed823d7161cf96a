// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cctype>
#include <map>

#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

/// Skips spaces and one `alignas(...)`.
std::size_t next_word(std::string_view code, std::size_t at) {
  at = std::min(code.find_first_not_of(' ', at), code.size());
  if (!code.substr(at).starts_with("alignas(")) return at;
  return std::min(code.find_first_not_of(' ', std::min(code.find(')', at), code.size() - 1) + 1),
                  code.size());
}

std::string_view word_at(std::string_view code, std::size_t at) {
  std::size_t end = at;
  while (end < code.size() && is_word_character(code[end])) ++end;
  return code.substr(at, end - at);
}

/// The type that is defined by what starts here, at the beginning of a line; empty when none is.
std::string_view type_defined_at(std::string_view code, std::size_t at) {
  static constexpr std::array<std::string_view, 5> keywords{"class", "struct", "union", "enum class", "enum"};
  for (const std::string_view keyword : keywords) {
    if (!code.substr(at).starts_with(keyword) || code.substr(at + keyword.size(), 1) != " ") continue;
    const std::size_t begin = next_word(code, at + keyword.size());
    const std::string_view name = word_at(code, begin);
    const std::size_t stop = code.find_first_of("{;", begin);
    const bool defined = stop != std::string_view::npos && code[stop] == '{';
    return defined ? name : std::string_view();
  }
  return {};
}

}  // namespace

std::vector<Finding> check_type_names(const SourceTree& tree) {
  std::vector<Finding> findings;
  std::map<std::string, std::string, std::less<>> first;  // place where each name was met
  for (const SourceFile& file : tree.files()) {
    if (file.kind() != FileKind::Header || !file.path().starts_with("src/")) continue;
    const std::string& code = file.views().code;
    for (std::size_t at = 0; at < code.size(); at = std::min(code.find('\n', at), code.size() - 1) + 1) {
      const std::string_view name = type_defined_at(code, at);
      if (name.empty()) continue;
      const auto [before, added] = first.emplace(name, file.path());
      if (added || before->second == file.path()) continue;
      findings.push_back({file.path(), file.line_of(at), "type-name",
                          std::string(name) + " is also a type of " + before->second});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
