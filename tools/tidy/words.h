// SPDX-License-Identifier: Apache-2.0
/// Finding words and calls in the code view of a source.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::tidy {

/// A word of a source and where it starts.
struct Word {
  std::string_view text;
  std::size_t offset = 0;
};

/// True for what identifiers are made of.
bool is_word_character(char c);

/// Lists every identifier-like word, in order. The views point into `code`.
std::vector<Word> words_of(std::string_view code);

/// Calls of functions from `names`: `name(` and `::name(`, but neither members (`x.name(`, `x->name(`), names
/// of other scopes (`other::name(`, except `std::`) nor declarations (`int name(`). A name that the file
/// itself, or `companion` (its header), declares is taken for its own function and only counts as `::name(`.
std::vector<Word> find_calls(std::string_view code, std::string_view companion,
                             const std::vector<std::string_view>& names);

}  // namespace firebreak::tidy
