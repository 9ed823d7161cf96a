// SPDX-License-Identifier: Apache-2.0
/// Comments that begin with a word that is no subject ("Of", "Whether", "Where", ...): such a comment is
/// seldom a sentence.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tidy/source_tree.h"

namespace firebreak::tidy {

/// Largest share of all comments that may begin so. It is today's share, and only ever becomes smaller.
inline constexpr std::size_t comments_without_subject_percent_max = 12;

/// One comment: consecutive lines of `//` that start in the same column, or what stands behind code on one
/// line.
struct Comment {
  std::string path;
  int line = 0;      ///< of its first line, from 1
  std::string text;  ///< its lines joined by spaces, without the slashes
};

/// All comments of the C and C++ files, without licence lines and those that have no letter.
std::vector<Comment> comments_of(const SourceTree& tree);

/// Whether the comment's first word is a preposition, a pronoun, a conjunction or a determiner that stands
/// alone.
bool begins_without_subject(std::string_view comment);

}  // namespace firebreak::tidy
