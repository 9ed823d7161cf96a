// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {

std::vector<Finding> check_using_namespace(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (file.kind() != FileKind::Header) continue;
    const std::vector<Word> words = words_of(file.views().code);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i - 1].text != "using" || words[i].text != "namespace") continue;
      findings.push_back({file.path(), file.line_of(words[i].offset), "using-namespace",
                          "a header decides for everybody who includes it; write the names out"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
