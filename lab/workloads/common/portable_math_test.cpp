// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace firebreak::workloads {
namespace {

TEST(PortableMath, ExponentialFollowsTheDoubleOne) {
  for (float x = -80.0f; x < 80.0f; x += 0.0371f) {
    EXPECT_NEAR(exponential(x) / std::exp(static_cast<double>(x)), 1.0, 1e-5) << x;
  }
  for (float x = -126.0f; x < 127.0f; x += 0.0173f) {
    EXPECT_NEAR(exponential2(x) / std::exp2(static_cast<double>(x)), 1.0, 3e-7) << x;
  }
  EXPECT_EQ(exponential2(0.0f), 1.0f);
  EXPECT_EQ(exponential2(-1000.0f), 0x1p-126f);
}

TEST(PortableMath, SineAndCosineOfTurns) {
  for (float turns = -1.0f; turns < 1.0f; turns += 0.00037f) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(turns);
    EXPECT_NEAR(sine_of_turns(turns), std::sin(angle), 1e-6) << turns;
    EXPECT_NEAR(cosine_of_turns(turns), std::cos(angle), 1e-6) << turns;
  }
}

TEST(PortableMath, LogarithmFollowsTheDoubleOne) {
  for (float x = 1e-9f; x < 1e9f; x *= 1.0037f) {
    EXPECT_NEAR(logarithm(x), std::log(static_cast<double>(x)), 2e-6) << x;
  }
  EXPECT_EQ(logarithm(1.0f), 0.0f);
}

TEST(PortableMath, SiluAndTangent) {
  for (float x = -20.0f; x < 20.0f; x += 0.013f) {
    const double exact = static_cast<double>(x);
    EXPECT_NEAR(silu(x), exact / (1.0 + std::exp(-exact)), 1e-5) << x;
    EXPECT_NEAR(tangent_hyperbolic(x), std::tanh(exact), 1e-6) << x;
  }
}

TEST(PortableMath, Bfloat16RoundsToNearestTiesToEven) {
  EXPECT_EQ(bfloat16_of_float(1.0f), 0x3f80u);
  EXPECT_EQ(bfloat16_of_float(float_of_bits(0x3f808000u)), 0x3f80u);
  EXPECT_EQ(bfloat16_of_float(float_of_bits(0x3f808001u)), 0x3f81u);
  EXPECT_EQ(bfloat16_of_float(float_of_bits(0x3f818000u)), 0x3f82u);
  EXPECT_EQ(bfloat16_of_float(float_of_bits(0xbf818000u)), 0xbf82u);
  const std::uint32_t pair = pack_bfloat16(2.0f, -0.5f);
  EXPECT_EQ(low_bfloat16(pair), 2.0f);
  EXPECT_EQ(high_bfloat16(pair), -0.5f);
}

}  // namespace
}  // namespace firebreak::workloads
