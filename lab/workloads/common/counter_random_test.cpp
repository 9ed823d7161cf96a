// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/counter_random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace firebreak::workloads {
namespace {

TEST(CounterRandom, NeighboursDifferInHalfOfTheirBits) {
  double bits = 0.0;
  for (std::uint64_t i = 0; i < 4096; ++i) bits += std::popcount(random_bits(7, i) ^ random_bits(7, i + 1));
  EXPECT_NEAR(bits / 4096.0, 32.0, 0.5);
}

TEST(CounterRandom, KeysOfDifferentPurposesDiffer) {
  EXPECT_NE(random_key(1, 2, 3), random_key(1, 3, 2));
  EXPECT_NE(random_key(1, 2, 3), random_key(2, 2, 3));
}

TEST(CounterRandom, UniformNumbersFillTheOpenInterval) {
  EXPECT_GT(signed_uniform(0), -1.0f);
  EXPECT_LT(signed_uniform(0xffffffffu), 1.0f);
  double sum = 0.0;
  double squares = 0.0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double value = static_cast<double>(signed_uniform(static_cast<std::uint32_t>(random_bits(5, i))));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0.0, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3.0, 0.01);
}

TEST(CounterRandom, NormalNumbersHaveTheMomentsOfTheNormalDistribution) {
  double sum = 0.0;
  double squares = 0.0;
  double fourths = 0.0;
  double products = 0.0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const NormalPair pair = normal_pair(random_bits(9, i));
    ASSERT_TRUE(std::isfinite(pair.first) && std::isfinite(pair.second)) << i;
    const double value = static_cast<double>(pair.first);
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
    products += value * static_cast<double>(pair.second);
  }
  EXPECT_NEAR(sum / 1e5, 0.0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1.0, 0.02);
  EXPECT_NEAR(fourths / 1e5, 3.0, 0.1);
  EXPECT_NEAR(products / 1e5, 0.0, 0.02);
}

TEST(CounterRandom, TheExtremeDrawsAreFinite) {
  for (const std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const NormalPair pair = normal_pair(bits);
    EXPECT_TRUE(std::isfinite(pair.first) && std::isfinite(pair.second));
  }
}

}  // namespace
}  // namespace firebreak::workloads
