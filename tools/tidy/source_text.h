// SPDX-License-Identifier: Apache-2.0
/// Splits C++ into what is code and what is commentary, well enough for rules that read words and braces.
#pragma once

#include <string>
#include <string_view>

namespace firebreak::tidy {

/// Two views of one source, each exactly as long as the source, with the same line ends; the rest is blank.
struct SourceViews {
  std::string code;      ///< without comments and without the contents of string and character literals
  std::string comments;  ///< the comments alone
};

/// Knows line and block comments, escapes, digit separators and raw strings.
SourceViews split_views(std::string_view source);

/// The code view with preprocessor directives (and their continued lines) blanked too.
std::string without_directives(std::string_view source, std::string_view code);

}  // namespace firebreak::tidy
