// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: every row of shared/abi/cuda_api.def must take and answer
// what the toolkit's declaration does. Types count as equal by size and shape, since ours are types of our
// own; a structure that ours only names is compared by being one.
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ours {
#include "shared/abi/cuda_driver_functions.h"
}  // namespace ours

// Without it the header renames functions to their newest version, and hides the others.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

namespace {

template <class Own, class Toolkits>
consteval bool same_type();

template <class Own, class Toolkits>
struct SameFunction : std::false_type {};

template <class OwnResult, class... Own, class Result, class... Toolkits>
requires(sizeof...(Own) ==
         sizeof...(Toolkits)) struct SameFunction<OwnResult (*)(Own...), Result (*)(Toolkits...)>
    : std::bool_constant<same_type<OwnResult, Result>() && (same_type<Own, Toolkits>() && ...)> {
};

template <class Type>
concept Opaque = !requires {
  sizeof(Type);
};

template <class Own, class Toolkits>
consteval bool same_pointee() {
  if (std::is_const_v<Own> != std::is_const_v<Toolkits>) return false;
  if constexpr (std::is_function_v<Own>) {
    return SameFunction<Own*, Toolkits*>::value;
  } else if constexpr (std::is_void_v<Own> || std::is_void_v<Toolkits>) {
    return std::is_void_v<Own> && std::is_void_v<Toolkits>;
  } else if constexpr (Opaque<Own>) {
    return std::is_class_v<Own> == std::is_class_v<Toolkits> && !std::is_enum_v<Toolkits>;
  } else if constexpr (Opaque<Toolkits>) {
    return false;
  } else {
    return same_type<std::remove_const_t<Own>, std::remove_const_t<Toolkits>>();
  }
}

template <class Own, class Toolkits>
consteval bool same_type() {
  if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Toolkits>) {
    return same_pointee<std::remove_pointer_t<Own>, std::remove_pointer_t<Toolkits>>();
  } else if constexpr (std::is_arithmetic_v<Own> || std::is_void_v<Own>) {
    return std::is_same_v<Own, Toolkits>;
  } else {
    return std::is_enum_v<Own> == std::is_enum_v<Toolkits> &&
           std::is_class_v<Own> == std::is_class_v<Toolkits> && sizeof(Own) == sizeof(Toolkits);
  }
}

template <class Own, class Toolkits>
consteval bool same() {
  return SameFunction<Own, Toolkits>::value;
}

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  static_assert(same<ours::PFN_##symbol, decltype(&::symbol)>());
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

}  // namespace
