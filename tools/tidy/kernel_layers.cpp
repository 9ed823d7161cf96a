// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/kernel_layers.h"

#include <algorithm>
#include <sstream>

#include "tools/tidy/rule.h"
#include "tools/tidy/words.h"

namespace firebreak::tidy {
namespace {

constexpr std::string_view table_head = "| layer of `";

/// The row that names a file, by the file's path; a row counts by its line in the page.
using Rows = std::map<std::string, int>;

/// Lists every `NAME` between back quotes.
std::vector<std::string> quoted_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t open = text.find('`'); open != std::string_view::npos; open = text.find('`', open)) {
    const std::size_t close = text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    names.emplace_back(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return names;
}

/// Reads the page's tables. Tells of a name that is there twice or stands for no file.
Rows read_layers(const SourceTree& tree, std::vector<Finding>& findings) {
  Rows layers;
  const SourceFile* page = tree.find(kernel_layers_path);
  if (page == nullptr) return layers;
  std::string folder;
  int number = 0;
  std::istringstream lines(page->text());
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.starts_with("|")) folder.clear();
    const auto names = quoted_names(line);
    if (line.starts_with(table_head) && !names.empty()) {
      folder = "kernel/" + names.front();
      continue;
    }
    if (folder.empty()) continue;
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      const bool is_new = layers.emplace(path, number).second;
      if (!is_new) findings.push_back({page->path(), number, "kernel-layer", name + " is in two layers"});
      if (tree.find(path) == nullptr)
        findings.push_back({page->path(), number, "kernel-layer", "there is no " + path});
    }
  }
  return layers;
}

/// One statement outside of all braces, up to the mark that says what it is: one of "([={;".
struct Head {
  std::string name;
  std::string before;
  char mark = 0;
};

Head head_of(std::string_view statement) {
  const std::size_t mark = statement.find_first_of("([={;");
  if (mark == std::string_view::npos) return {};
  std::size_t end = mark;
  while (end > 0 && !is_word_character(statement[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word_character(statement[begin - 1])) --begin;
  return {std::string(statement.substr(begin, end - begin)), std::string(statement.substr(0, begin)),
          statement[mark]};
}

bool has_word(std::string_view text, std::string_view wanted) {
  return std::ranges::any_of(words_of(text), [&](const Word& word) { return word.text == wanted; });
}

void take(std::string_view statement, bool has_body, KernelNames& names) {
  const Head head = head_of(statement);
  const bool is_function = head.mark == '(' && has_body;
  const bool is_object = head.mark == '=' || head.mark == '[' || head.mark == ';';
  if (head.name.empty() || !(is_function || is_object)) return;
  // nothing before it is a type: a macro or a tag
  if (head.before.find_first_not_of(" \t\n") == std::string::npos) return;
  if (has_word(head.before, "extern") || has_word(head.before, "typedef")) return;
  names.own.insert(head.name);
  if (!has_word(head.before, "static")) names.offered.insert(head.name);
}

/// A file of kernel/, what it defines, and its code.
struct Part {
  const SourceFile* file = nullptr;
  std::string code;
  KernelNames names;
};

bool is_member(std::string_view code, const Word& word) {
  const std::string_view before = code.substr(0, word.offset);
  return before.ends_with('.') || before.ends_with("->");
}

/// Tells of what `part` uses of a file that stands in no earlier row.
void check_part(const Part& part, const std::map<std::string, const SourceFile*, std::less<>>& offers,
                const Rows& layers, std::vector<Finding>& findings) {
  const auto from = layers.find(part.file->path());
  if (from == layers.end()) return;
  for (const Word& word : words_of(part.code)) {
    const auto found = offers.find(word.text);
    if (found == offers.end() || part.names.own.contains(found->first)) continue;
    if (is_member(part.code, word)) continue;
    const auto to = layers.find(found->second->path());
    if (to == layers.end() || to->second < from->second) continue;
    findings.push_back({part.file->path(), part.file->line_of(word.offset), "kernel-layer",
                        found->first + " is in " + to->first + ", which is in no earlier layer"});
  }
}

}  // namespace

KernelNames kernel_names(std::string_view code) {
  KernelNames names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] == '{' || code[at] == '(') ++depth;
    if (code[at] == '}' || code[at] == ')') --depth;
    if (depth != 0) continue;
    const std::string_view statement = code.substr(begin, at - begin + 1);
    const bool ends_body = code[at] == '}' && head_of(statement).mark == '(';
    if (code[at] != ';' && !ends_body) continue;
    take(statement, ends_body, names);
    begin = at + 1;
  }
  return names;
}

std::vector<Finding> check_kernel_layers(const SourceTree& tree) {
  std::vector<Finding> findings;
  const auto layers = read_layers(tree, findings);
  std::map<std::string, std::map<std::string, const SourceFile*, std::less<>>> definers;  // keyed by folder
  std::vector<Part> parts;
  for (const SourceFile& file : tree.files()) {
    if (!file.path().starts_with("kernel/") || file.kind() != FileKind::Source) continue;
    std::string code = without_directives(file.text(), file.views().code);
    KernelNames names = kernel_names(code);
    for (const std::string& name : names.offered)
      definers[std::string(folder_of(file.path()))].emplace(name, &file);
    parts.push_back({&file, std::move(code), std::move(names)});
    if (!layers.contains(file.path()))
      findings.push_back(
          {file.path(), 1, "kernel-layer", "is in no layer of " + std::string(kernel_layers_path)});
  }
  for (const Part& part : parts)
    check_part(part, definers[std::string(folder_of(part.file->path()))], layers, findings);
  return findings;
}

}  // namespace firebreak::tidy
