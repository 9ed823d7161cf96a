// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace firebreak {

inline constexpr std::uint64_t kib = std::uint64_t{1} << 10;
inline constexpr std::uint64_t mib = std::uint64_t{1} << 20;
inline constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// `value` rounded up to a multiple of `granularity`, which is a power of two.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t granularity) {
  return (value + granularity - 1) & ~(granularity - 1);
}

}  // namespace firebreak
