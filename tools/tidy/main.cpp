// SPDX-License-Identifier: Apache-2.0
/// tidy [ROOT]: checks the project's own rules over a checkout and prints "file:line: rule: message".
/// Exit status: 0 clean, 1 findings, 2 wrong use.
#include <cstdio>
#include <cstring>

#include "tools/tidy/exceptions.h"
#include "tools/tidy/rule.h"

namespace {

using namespace firebreak::tidy;

constexpr const char* exceptions_path = "tools/tidy/exceptions.txt";

int usage() {
  std::printf("usage: tidy [ROOT]    check the rules over a checkout (default: here)\n");
  for (const Rule& rule : all_rules()) {
    std::printf("  %-18.*s %.*s\n", static_cast<int>(rule.name.size()), rule.name.data(),
                static_cast<int>(rule.what.size()), rule.what.data());
  }
  return 2;
}

std::vector<Finding> check_all(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const Rule& rule : all_rules()) {
    auto more = rule.check(tree);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  const SourceFile* exceptions = tree.find(exceptions_path);
  return apply_exceptions(std::move(findings), exceptions == nullptr ? "" : exceptions->text(),
                          exceptions_path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::strncmp(argv[1], "-", 1) == 0)) return usage();
  const auto tree = read_source_tree(argc == 2 ? argv[1] : ".");
  if (!tree || tree->files().empty()) {
    std::fprintf(stderr, "tidy: nothing to read in %s\n", argc == 2 ? argv[1] : ".");
    return 2;
  }
  const auto findings = check_all(*tree);
  for (const Finding& finding : findings) {
    std::printf("%s:%d: %s: %s\n", finding.path.c_str(), finding.line, finding.rule.c_str(),
                finding.message.c_str());
  }
  std::printf("tidy: %zu findings, %zu rules, %zu files\n", findings.size(), all_rules().size(),
              tree->files().size());
  return findings.empty() ? 0 : 1;
}
