// SPDX-License-Identifier: Apache-2.0
/// Whether a program that this one becomes, or starts, can load this library (pure). It runs between vfork()
/// and exec, so nothing here takes memory.
#pragma once

#include <cstddef>
#include <string_view>

namespace firebreak::guard {

/// "LD_PRELOAD=...", where that is what an entry of an environment says; empty: it is another.
std::string_view preloads_in(const char* entry);

/// True when one of the libraries in the list is this one, by its file's name.
bool has_guard(std::string_view preloads);

/// Writes the entry without this library into `into`, which has room for all of it and a zero, and returns
/// its length. 0: no library is left.
std::size_t without_guard(std::string_view preloads, char* into);

}  // namespace firebreak::guard
