// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <sstream>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

/// How many words, or lines, some documents may have together. A limit is lowered when they shrink, never
/// raised.
struct Limit {
  std::string_view what;
  bool (*counts)(std::string_view path);
  int (*measure)(const SourceFile& file);
  int most;
  bool together;  ///< true: all of them in sum; false: each by itself
};

/// Words as `wc -w` counts them: what stands between white space, a table's bars among it.
int words_of_file(const SourceFile& file) {
  std::istringstream text(file.text());
  int count = 0;
  for (std::string word; text >> word;) ++count;
  return count;
}

int lines_of_file(const SourceFile& file) { return file.line_count(); }

constexpr std::array<std::string_view, 5> first_pages{"README.md", "ARCHITECTURE.md", "GLOSSARY.md",
                                                      "HACKING.md", "STYLE.md"};

bool is_document(std::string_view path) { return path.ends_with(".md"); }

constexpr std::array limits{
    Limit{"words of all documents", is_document, words_of_file, 30000, true},
    Limit{"words of README, ARCHITECTURE, GLOSSARY, HACKING and STYLE",
          [](std::string_view path) { return std::ranges::find(first_pages, path) != first_pages.end(); },
          words_of_file, 6500, true},
    Limit{"words of ARCHITECTURE", [](std::string_view path) { return path == "ARCHITECTURE.md"; },
          words_of_file, 1500, false},
    Limit{"lines of README", [](std::string_view path) { return path == "README.md"; }, lines_of_file, 90,
          false},
    Limit{"words of a page of docs/how",
          [](std::string_view path) { return path.starts_with("docs/how/") && is_document(path); },
          words_of_file, 1500, false},
};

void check_limit(const Limit& limit, const SourceTree& tree, std::vector<Finding>& findings) {
  const auto report = [&](const std::string& path, int count) {
    if (count > limit.most)
      findings.push_back({path, 1, "document-words",
                          std::string(limit.what) + ": " + std::to_string(count) + " of at most " +
                              std::to_string(limit.most)});
  };
  int sum = 0;
  for (const SourceFile& file : tree.files()) {
    if (!limit.counts(file.path())) continue;
    const int count = limit.measure(file);
    sum += count;
    if (!limit.together) report(file.path(), count);
  }
  if (limit.together) report("README.md", sum);
}

}  // namespace

std::vector<Finding> check_document_words(const SourceTree& tree) {
  std::vector<Finding> findings;
  for (const Limit& limit : limits) check_limit(limit, tree, findings);
  return findings;
}

}  // namespace firebreak::tidy
