// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/function_scanner.h"
#include "tools/tidy/rule.h"

namespace firebreak::tidy {

std::vector<Finding> check_function_length(const SourceTree& tree) {
  constexpr int most_lines = 70;
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (!file.is_cpp()) continue;
    const std::string code = without_directives(file.text(), file.views().code);
    for (const FunctionSpan& function : find_functions(code)) {
      const int first = file.line_of(function.signature);
      const int lines = file.line_of(function.end) - first + 1;
      if (lines <= most_lines) continue;
      findings.push_back({file.path(), first, "function-length",
                          function.name + " has " + std::to_string(lines) + " lines, " +
                              std::to_string(most_lines) + " are allowed"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
