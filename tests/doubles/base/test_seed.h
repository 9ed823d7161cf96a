// SPDX-License-Identifier: Apache-2.0
/// Seeds of random tests. For tests alone.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace firebreak {

/// FIREBREAK_TEST_SEED, or a new one. It is printed, so that a failure can be had again.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("FIREBREAK_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("FIREBREAK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace firebreak
