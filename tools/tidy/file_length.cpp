// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/rule.h"

namespace firebreak::tidy {

std::vector<Finding> check_file_length(const SourceTree& tree) {
  constexpr int most_lines = 900;
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (file.kind() == FileKind::Other || file.line_count() <= most_lines) continue;
    findings.push_back({file.path(), most_lines + 1, "file-length",
                        "the file has " + std::to_string(file.line_count()) + " lines, " +
                            std::to_string(most_lines) + " are allowed"});
  }
  return findings;
}

}  // namespace firebreak::tidy
