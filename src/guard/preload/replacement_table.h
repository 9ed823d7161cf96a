// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace firebreak::guard {

inline constexpr int ever = 1'000'000;

/// An exported symbol of the driver's, the name under which cuGetProcAddress knows it, and the CUDA versions
/// [since, before) for which it answers with this symbol (NVIDIA's cudaTypedefs.h).
struct Replacement {
  std::string_view symbol;
  std::string_view name;  ///< empty: it is found by its symbol alone
  void* function;
  int since = 0;
  int before = ever;
  void* per_thread = nullptr;  ///< the same for who wants the thread's own default stream, where that differs
};

template <class Function>
void* untyped(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Of what changes memory, contexts and streams, and of launches.
std::span<const Replacement> driver_replacements();
/// Of copies, fills and what else is work (work_functions.h).
std::span<const Replacement> work_replacements();

}  // namespace firebreak::guard
