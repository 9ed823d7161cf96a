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
  std::string_view name;
  void* function;
  int since = 0;
  int before = ever;
  /// The same for who wants the thread's own default stream, where that differs; its symbol has _ptsz or
  /// _ptds behind it.
  void* per_thread = nullptr;
};

template <class Function>
void* untyped(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Of what changes memory and contexts, of launches and streams, and of what is only counted
/// (work_functions.h).
std::span<const Replacement> memory_replacements();
std::span<const Replacement> stream_replacements();
std::span<const Replacement> copy_replacements();
std::span<const Replacement> fill_replacements();
std::span<const Replacement> stream_work_replacements();

}  // namespace firebreak::guard
