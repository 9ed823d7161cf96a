// SPDX-License-Identifier: Apache-2.0
/// The driver's functions that the guard answers itself, and what it gives out in their place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace firebreak::guard {

struct Replacement {
  void* function = nullptr;    ///< null: the driver's own is given out
  void* per_thread = nullptr;  ///< function behind its per-thread symbol, where it has one
};

/// One for each of abi::cuda_functions(), in their order (in_place.cpp).
std::span<const Replacement> replacements();

/// True when it is a function of this library.
bool is_ours(const void* found);

/// Returns what stands in for the driver's exported symbol `name`, which is `found`; null: nothing does.
void* replacement_of_symbol(std::string_view name, const void* found);

/// Returns what stands in for what cuGetProcAddress answers for `name`, which has no version in it, at that
/// CUDA version and with those flags. Null: nothing does.
void* replacement_of_entry_point(std::string_view name, int cuda_version, std::uint64_t flags);

}  // namespace firebreak::guard
