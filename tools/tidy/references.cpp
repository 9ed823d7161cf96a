// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

bool is_document(const SourceFile& file) { return file.path().ends_with(".md"); }

bool is_path_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' ||
         c == '+';
}

/// `folder` and a path that is relative to it, as one path from the repository's root.
std::string from_root(std::string_view folder, std::string_view path) {
  return (std::filesystem::path(folder) / path).lexically_normal().generic_string();
}

/// The anchor that a heading of Markdown gets: lower case, spaces as dashes, punctuation left out.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ') anchor += '-';
    const bool stays =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || (c & 0x80) != 0;
    if (stays) anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return anchor;
}

bool has_anchor(const SourceFile& page, std::string_view anchor) {
  std::string_view rest = page.text();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with('#')) continue;
    if (anchor_of(line.substr(std::min(line.find_first_not_of("# "), line.size()))) == anchor) return true;
  }
  return false;
}

/// Knows the tree's files and all folders around them.
class Places {
 public:
  explicit Places(const SourceTree& tree) : tree_(tree) {
    for (const SourceFile& file : tree.files()) {
      for (std::string_view folder = folder_of(file.path()); !folder.empty(); folder = folder_of(folder))
        folders_.emplace(folder);
    }
  }

  bool has(std::string path) const {
    if (path.ends_with('/')) path.pop_back();
    return tree_.find(path) != nullptr || folders_.contains(path);
  }

  /// Tells whether some file's path ends with this one, so that the folders before it may be left out.
  bool ends_some_path(std::string_view path) const {
    const std::string ending = "/" + std::string(path);
    return tree_.find(path) != nullptr || std::ranges::any_of(tree_.files(), [&](const SourceFile& file) {
             return file.path().ends_with(ending);
           });
  }

  const SourceFile* page(std::string_view path) const { return tree_.find(path); }

 private:
  const SourceTree& tree_;
  std::set<std::string, std::less<>> folders_;
};

struct Check {
  const Places& places;
  const SourceFile& file;
  std::vector<Finding>& findings;

  void report(std::size_t offset, const std::string& message) const {
    findings.push_back({file.path(), file.line_of(offset), "reference", message});
  }
};

/// Checks every `](target)` of a document that leads to this repository.
void check_links(const Check& check) {
  const std::string_view text = check.file.text();
  for (std::size_t at = text.find("]("); at != std::string_view::npos; at = text.find("](", at + 2)) {
    const std::size_t end = text.find(')', at);
    if (end == std::string_view::npos) return;
    const std::string_view target = text.substr(at + 2, end - at - 2);
    if (target.find("://") != std::string_view::npos || target.find_first_of(" \n") != std::string_view::npos)
      continue;
    const std::size_t mark = target.find('#');
    const std::string_view name = target.substr(0, mark);
    const std::string path = name.empty() ? check.file.path() : from_root(folder_of(check.file.path()), name);
    if (!check.places.has(path)) {
      check.report(at, "there is no " + path);
      continue;
    }
    const SourceFile* page = check.places.page(path);
    if (mark == std::string_view::npos || page == nullptr || !is_document(*page)) continue;
    if (!has_anchor(*page, target.substr(mark + 1)))
      check.report(at, path + " has no " + std::string(target.substr(mark)));
  }
}

/// A file between back quotes, with a folder before it: it ends the path of some file.
void check_quoted_paths(const Check& check) {
  static constexpr std::array<std::string_view, 10> endings{".h",  ".c",  ".cpp", ".def", ".py",
                                                            ".sh", ".md", ".cu",  ".txt", ".mk"};
  const std::string_view text = check.file.text();
  for (std::size_t open = text.find('`'); open != std::string_view::npos;) {
    const std::size_t close = text.find('`', open + 1);
    if (close == std::string_view::npos) return;
    const std::string_view word = text.substr(open + 1, close - open - 1);
    const bool is_file = std::ranges::any_of(endings, [&](auto ending) { return word.ends_with(ending); });
    const bool is_path =
        std::ranges::all_of(word, is_path_character) && word.find('/') != std::string_view::npos;
    if (is_file && is_path && !word.starts_with('/') && !word.starts_with("docs/") &&
        !word.starts_with("build/") && !check.places.ends_some_path(word))
      check.report(open, "there is no file " + std::string(word));
    open = text.find('`', close + 1);
  }
}

/// `docs/…` and `results/…`, in a comment as in a document.
void check_named_pages(const Check& check) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kinds{
      std::pair{"docs/", ".md"}, std::pair{"docs/", ".svg"}, std::pair{"results/", ".json"}};
  const std::string_view text = check.file.text();
  for (const auto& [folder, ending] : kinds) {
    for (std::size_t at = text.find(folder); at != std::string_view::npos; at = text.find(folder, at + 1)) {
      if (at > 0 && is_path_character(text[at - 1])) continue;
      std::size_t end = at;
      while (end < text.size() && is_path_character(text[end])) ++end;
      std::string_view path = text.substr(at, end - at);
      while (path.ends_with('.')) path.remove_suffix(1);
      if (path.ends_with(ending) && !check.places.has(std::string(path)))
        check.report(at, "there is no " + std::string(path));
    }
  }
}

/// Tells whether the file only plays documents: a test of a tool that reads them.
bool plays_documents(const SourceFile& file) { return file.is_test() && file.path().starts_with("tools/"); }

}  // namespace

std::vector<Finding> check_references(const SourceTree& tree) {
  std::vector<Finding> findings;
  const Places places(tree);
  for (const SourceFile& file : tree.files()) {
    if (file.path().starts_with("results/") || plays_documents(file)) continue;
    const Check check{places, file, findings};
    if (is_document(file)) {
      check_links(check);
      check_quoted_paths(check);
    }
    check_named_pages(check);
  }
  return findings;
}

}  // namespace firebreak::tidy
