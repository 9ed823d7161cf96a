// SPDX-License-Identifier: Apache-2.0
/// Finds function bodies by matching braces; no compiler needed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::tidy {

/// One function definition, by offsets into the code.
struct FunctionSpan {
  std::string name;
  std::size_t signature = 0;  ///< its first character
  std::size_t end = 0;        ///< its closing brace
};

/// Finds every function in a code view without directives (source_text.h). Lambdas and local classes belong
/// to the function around them; a lambda that initialises a constant counts on its own.
std::vector<FunctionSpan> find_functions(std::string_view code);

}  // namespace firebreak::tidy
