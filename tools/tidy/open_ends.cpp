// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {

std::vector<Finding> check_open_ends(const SourceTree& tree) {
  static constexpr std::array<std::string_view, 4> notes{"TODO", "FIXME", "XXX", "HACK"};
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (file.kind() == FileKind::Other) continue;
    const std::string& text = file.is_cpp() ? file.views().comments : file.text();
    for (const Word& word : words_of(text)) {
      if (std::find(notes.begin(), notes.end(), word.text) == notes.end()) continue;
      findings.push_back({file.path(), file.line_of(word.offset), "open-end",
                          std::string(word.text) + ": do it now, or open an issue"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
