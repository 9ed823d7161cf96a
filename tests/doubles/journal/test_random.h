// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::journal {

/// Random numbers of a test, the same again with FIREBREAK_TEST_SEED.
class TestRandom {
 public:
  TestRandom() : TestRandom(test_seed()) {}
  explicit TestRandom(std::uint64_t seed) : seed_(seed), engine_(seed) {}

  std::uint64_t seed() const { return seed_; }
  std::string how_to_repeat() const { return "FIREBREAK_TEST_SEED=" + std::to_string(seed_); }
  /// From 0 to below - 1.
  std::size_t below(std::size_t below) { return static_cast<std::size_t>(engine_() % below); }
  bool once_in(std::size_t times) { return below(times) == 0; }
  std::byte byte() { return static_cast<std::byte>(engine_() & 0xff); }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace firebreak::journal
