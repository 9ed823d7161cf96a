// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tools/tidy/folder_map.h"
#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

/// One #include of a file of ours: what stands between the quotes (or the angle brackets), and its line.
struct Include {
  std::string name;
  int line = 0;
  bool quoted = true;
};

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

/// Where an include stands in the repository; empty when it is not rooted at one of the three places.
std::string rooted(const SourceTree& tree, const std::string& name) {
  static constexpr std::array<std::string_view, 3> roots{"", "src/", "include/"};
  for (const auto root : roots) {
    std::string path = std::string(root) + name;
    if (tree.find(path) != nullptr) return path;
  }
  return {};
}

/// What is wrong with one include of a file in the folder `from`; empty when nothing is.
std::string objection(const SourceTree& tree, std::string_view from, const Include& include) {
  const std::string path = rooted(tree, include.name);
  if (path.empty() && !include.quoted) return {};
  if (path.empty())
    return "\"" + include.name + "\" is not a path from src/, include/ or the repository's root";
  const std::string_view to = mapped_folder(path);
  if (from == to || (!to.empty() && may_know(from, to))) return {};
  return std::string(from) + " must not know " + (to.empty() ? path : std::string(to));
}

}  // namespace

std::vector<Finding> check_include_direction(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const SourceFile& file : tree.files()) {
    // The kernel's own build says what its files include.
    if (!file.is_cpp() || file.path().starts_with("kernel/")) continue;
    const std::string_view from = mapped_folder(file.path());
    const auto report = [&](int line, std::string message) {
      findings.push_back({file.path(), line, "include-direction", std::move(message)});
    };
    if (from.empty()) {
      report(1, "the file stands in no folder of the map (tools/tidy/folder_map.cpp)");
      continue;
    }
    for (const Include& include : includes_of(file)) {
      std::string message = objection(tree, from, include);
      if (!message.empty()) report(include.line, std::move(message));
    }
  }
  return findings;
}

}  // namespace firebreak::tidy
