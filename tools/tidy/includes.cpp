// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/includes.h"

#include <array>

namespace firebreak::tidy {

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  const std::string& code = file.views().code;
  for (std::size_t at = code.find('#'); at != std::string::npos; at = code.find('#', at + 1)) {
    const std::size_t word = code.find_first_not_of(" \t", at + 1);
    if (word == std::string::npos || code.compare(word, 7, "include") != 0) continue;
    const std::size_t open = code.find_first_not_of(" \t", word + 7);
    if (open == std::string::npos || (code[open] != '"' && code[open] != '<')) continue;
    const bool quoted = code[open] == '"';
    const std::size_t close = file.text().find(quoted ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    includes.push_back({file.text().substr(open + 1, close - open - 1), file.line_of(at), quoted});
  }
  return includes;
}

const SourceFile* included_file(const SourceTree& tree, const Include& include) {
  static constexpr std::array<std::string_view, 4> roots{"", "src/", "lab/", "include/"};
  for (const auto root : roots) {
    if (const SourceFile* file = tree.find(std::string(root) + include.name)) return file;
  }
  return nullptr;
}

}  // namespace firebreak::tidy
