// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

bool is_of_a_library(std::string_view path) {
  for (const char* programs :
       {"src/commands/cli/", "lab/commands/", "lab/softgpu/", "lab/workloads/", "lab/bench/"}) {
    if (path.starts_with(programs)) return false;
  }
  return path.starts_with("src/") || path.starts_with("lab/");
}

}  // namespace

std::vector<Finding> check_library_exit(const SourceTree& tree) {
  static const std::vector<std::string_view> endings{"exit",       "_exit", "_Exit",
                                                     "quick_exit", "abort", "terminate"};
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (!file.is_cpp() || file.is_test() || !is_of_a_library(file.path())) continue;
    for (const Word& call : find_calls(file.views().code, tree.companion_code(file), endings)) {
      findings.push_back({file.path(), file.line_of(call.offset), "library-exit",
                          std::string(call.text) + "() ends the process; a library returns an error"});
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
