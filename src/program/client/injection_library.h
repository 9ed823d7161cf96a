// SPDX-License-Identifier: Apache-2.0
/// The one function of libfirebreak-inject.so, between it and libfirebreak of the same build.
#pragma once

#include <cstddef>

namespace firebreak::client {

inline constexpr const char* injection_library = "libfirebreak-inject.so";
inline constexpr const char* injection_symbol = "firebreak_raise_fault";

/// Prepares a fault of `kind` in the current context, calls `about_to` with `argument`, raises it, and waits
/// for the driver's answer. Some kinds end the process instead. Returns 0; where nothing was raised, and
/// `about_to` not called, 1 with the reason in `why`, cut to its size.
using RaiseFault = int(const char* kind, void (*about_to)(void* argument), void* argument, char* why,
                       std::size_t why_bytes);

}  // namespace firebreak::client
