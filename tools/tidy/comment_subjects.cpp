// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/comment_subjects.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {
namespace {

constexpr std::array<std::string_view, 87> function_words{
    "of",    "to",     "by",      "in",      "on",     "at",      "from",    "with",     "without", "for",
    "as",    "if",     "when",    "where",   "while",  "whether", "who",     "whom",     "whose",   "what",
    "which", "that",   "this",    "these",   "those",  "it",      "they",    "them",     "and",     "or",
    "but",   "so",     "nor",     "not",     "no",     "only",    "also",    "than",     "then",    "there",
    "here",  "after",  "before",  "until",   "since",  "unless",  "because", "although", "though",  "once",
    "under", "over",   "between", "among",   "beside", "besides", "behind",  "beyond",   "about",   "above",
    "below", "into",   "onto",    "out",     "up",     "down",    "off",     "through",  "during",  "both",
    "each",  "every",  "either",  "neither", "any",    "all",     "some",    "such",     "same",    "another",
    "other", "others", "more",    "most",    "less",   "least",   "own"};

/// Where the comment of a line begins, at its slashes; npos where the line has none.
std::size_t comment_at(std::string_view code, std::string_view comments) {
  const std::size_t at = comments.find("//");
  // Slashes inside a literal are blank in both views.
  return at != std::string_view::npos && at <= code.size() ? at : std::string_view::npos;
}

std::string_view without_slashes(std::string_view comment) {
  const std::size_t begin = comment.find_first_not_of("/<! \t");
  if (begin == std::string_view::npos) return {};
  return comment.substr(begin, comment.find_last_not_of(" \t\r") - begin + 1);
}

/// The comments of one file, line by line.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  void line(int number, std::string_view code, std::string_view comments) {
    const std::size_t at = comment_at(code, comments);
    const std::string_view text = without_slashes(comments.substr(std::min(at, comments.size())));
    const bool is_alone = code.substr(0, at).find_first_not_of(" \t") == std::string_view::npos;
    const bool goes_on = is_alone && at != std::string_view::npos && at == column_;
    column_ = is_alone ? at : std::string_view::npos;
    if (text.starts_with("SPDX")) column_ = std::string_view::npos;
    if (column_ == std::string_view::npos && (at == std::string_view::npos || is_alone)) return;
    if (goes_on) {
      found_.back().text.append(" ").append(text);
    } else {
      found_.push_back({path_, number, std::string(text)});
    }
  }

  std::vector<Comment> found() && { return std::move(found_); }

 private:
  std::string path_;
  std::vector<Comment> found_;
  std::size_t column_ = std::string_view::npos;  ///< of a comment that the next line may go on with
};

bool has_letter(const Comment& comment) {
  return std::ranges::any_of(comment.text, [](unsigned char c) { return std::isalpha(c) != 0; });
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

std::vector<Comment> comments_of(const SourceTree& tree) {
  std::vector<Comment> found;
  for (const SourceFile& file : tree.files()) {
    if (!file.is_cpp()) continue;
    Reader reader(file.path());
    std::string_view code = file.views().code;
    std::string_view comments = file.views().comments;
    for (int number = 1; !comments.empty(); ++number) {
      const std::string_view line = take_line(code);
      reader.line(number, line, take_line(comments));
    }
    for (Comment& comment : std::move(reader).found()) {
      if (has_letter(comment)) found.push_back(std::move(comment));
    }
  }
  return found;
}

bool begins_without_subject(std::string_view comment) {
  std::string word;
  for (const char c : comment) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return std::ranges::find(function_words, word) != function_words.end();
}

std::vector<Finding> check_comment_subjects(const SourceTree& tree) {
  const auto comments = comments_of(tree);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      comments, [](const Comment& comment) { return begins_without_subject(comment.text); }));
  if (count * 100 <= comments.size() * comments_without_subject_percent_max) return {};
  return {{"tools/tidy/comment_subjects.cpp", 1, "comment-subject",
           std::to_string(count) + " of " + std::to_string(comments.size()) +
               " comments begin with a function word, and " + std::to_string(comments_without_subject_percent_max) +
               " % may; `tidy --openings` lists them"}};
}

}  // namespace firebreak::tidy
