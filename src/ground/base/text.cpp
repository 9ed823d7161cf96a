// SPDX-License-Identifier: Apache-2.0
#include "ground/base/text.h"

#include <algorithm>

namespace firebreak {

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

std::string printable(std::string_view text, std::size_t most_bytes) {
  std::string shown(text.substr(0, most_bytes));
  std::ranges::replace_if(
      shown, [](unsigned char byte) { return byte < ' ' || byte > '~'; }, '?');
  return shown;
}

std::string trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(blanks) - begin + 1));
}

}  // namespace firebreak
