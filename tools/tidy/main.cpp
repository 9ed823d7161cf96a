// SPDX-License-Identifier: Apache-2.0
/// tidy [ROOT [TARGETS]]: checks the project's own rules over a checkout and prints "file:line: rule:
/// message". TARGETS is what CMake wrote about its targets; by default that of the build that tidy is of.
/// tidy --openings [ROOT]: prints the comments that begin with a function word.
/// Exit status: 0 clean, 1 findings, 2 wrong use.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tools/tidy/comment_subjects.h"
#include "tools/tidy/exceptions.h"
#include "tools/tidy/rule.h"

namespace {

using namespace firebreak::tidy;

constexpr const char* exceptions_path = "tools/tidy/exceptions.txt";

int usage() {
  std::printf(
      "usage: tidy [ROOT [TARGETS]]    check the rules over a checkout (default: here)\n"
      "       tidy --openings [ROOT]  list the comments that begin with a function word\n");
  for (const Rule& rule : all_rules()) {
    std::printf("  %-18.*s %.*s\n", static_cast<int>(rule.name.size()), rule.name.data(),
                static_cast<int>(rule.what.size()), rule.what.data());
  }
  return 2;
}

std::optional<std::vector<Target>> read_targets(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return parse_targets(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
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

int list_openings(const char* root) {
  const auto tree = read_source_tree(root, {});
  if (!tree) return 2;
  for (const Comment& comment : comments_of(*tree)) {
    if (begins_without_subject(comment.text))
      std::printf("%s:%d: %s\n", comment.path.c_str(), comment.line, comment.text.c_str());
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--openings") == 0) return list_openings(argc > 2 ? argv[2] : ".");
  if (argc > 3 || (argc > 1 && std::strncmp(argv[1], "-", 1) == 0)) return usage();
  const char* root = argc > 1 ? argv[1] : ".";
  const char* targets_path = argc > 2 ? argv[2] : FIREBREAK_TARGETS;
  auto targets = read_targets(targets_path);
  if (!targets || targets->empty()) {
    std::fprintf(stderr, "tidy: %s is no list of targets\n", targets_path);
    return 2;
  }
  const auto tree = read_source_tree(root, std::move(*targets));
  if (!tree || tree->files().empty()) {
    std::fprintf(stderr, "tidy: nothing to read in %s\n", root);
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
