// SPDX-License-Identifier: Apache-2.0
/// Words and bytes of others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firebreak {

/// FNV-1a over 64 bits: the same wherever and whenever it is asked, which std::hash is not bound to be. No
/// protection against forgery.
std::uint64_t fnv1a(std::string_view bytes);

/// Its first `most_bytes`, with '?' in place of all that is no printable ASCII: a line stays one, and a
/// terminal does nothing that the text says.
std::string printable(std::string_view text, std::size_t most_bytes = std::string_view::npos);

/// Removes blanks before and behind the text.
std::string trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

}  // namespace firebreak
