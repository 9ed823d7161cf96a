// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

/// A list without its comments: a test that was commented out never runs either.
std::string without_comments(std::string_view list) {
  std::string kept(list);
  for (std::size_t at = kept.find('#'); at != std::string::npos; at = kept.find('#', at)) {
    kept.erase(at, std::min(kept.find('\n', at), kept.size()) - at);
  }
  return kept;
}

/// True when `path` stands in `text` as a whole, not as the end of a longer name.
bool names(std::string_view text, std::string_view path) {
  for (std::size_t at = text.find(path); at != std::string_view::npos; at = text.find(path, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const std::size_t end = at + path.size();
    const char after = end == text.size() ? ' ' : text[end];
    const bool starts = !is_word_character(before) && before != '.' && before != '-';
    if (starts && !is_word_character(after)) return true;
  }
  return false;
}

/// Looks in the test's own folder and then in every folder above it.
bool is_listed(const SourceTree& tree, const SourceFile& test) {
  for (std::string_view folder = folder_of(test.path());; folder = folder_of(folder)) {
    const std::string prefix = folder.empty() ? std::string() : std::string(folder) + "/";
    const SourceFile* list = tree.find(prefix + "CMakeLists.txt");
    const std::string_view path = std::string_view(test.path()).substr(prefix.size());
    if (list != nullptr && names(without_comments(list->text()), path)) return true;
    if (folder.empty()) return false;
  }
}

}  // namespace

std::vector<Finding> check_unlisted_tests(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    if (!file.is_test() || is_listed(tree, file)) continue;
    findings.push_back(
        {file.path(), 1, "unlisted-test", "no CMakeLists.txt names this test, so it never runs"});
  }
  return findings;
}

}  // namespace firebreak::tidy
