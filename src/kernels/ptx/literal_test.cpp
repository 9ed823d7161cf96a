// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/literal.h"

#include <gtest/gtest.h>

#include <bit>

namespace firebreak::ptx {
namespace {

constexpr std::optional<std::uint64_t> nothing;

Literal integer(std::uint64_t bits) { return {bits, false, false}; }
Literal real(double value) { return {std::bit_cast<std::uint64_t>(value), true, false}; }
Literal single(std::uint32_t bits) { return {bits, true, true}; }

TEST(Literal, IntegersAreTruncatedToTheirType) {
  EXPECT_EQ(literal_bits(integer(static_cast<std::uint64_t>(-1)), Type::S32), 0xffffffffU);
  EXPECT_EQ(literal_bits(integer(300), Type::U8), 44U);
  EXPECT_EQ(literal_bits(integer(static_cast<std::uint64_t>(-1)), Type::B64), ~0ULL);
  EXPECT_EQ(literal_bits(integer(5), Type::Pred), 1U);
}

TEST(Literal, FloatsAreRoundedToTheirType) {
  EXPECT_EQ(literal_bits(real(1.0), Type::F32), 0x3f800000U);
  EXPECT_EQ(literal_bits(real(0.1), Type::F32), 0x3dcccccdU);
  EXPECT_EQ(literal_bits(real(1e39), Type::F32), 0x7f800000U);
  EXPECT_EQ(literal_bits(real(-1e39), Type::F32), 0xff800000U);
  EXPECT_EQ(literal_bits(real(0x1.fffffe8p127), Type::F32), 0x7f7fffffU);
  EXPECT_EQ(literal_bits(single(0x3fc00000), Type::F64), std::bit_cast<std::uint64_t>(1.5));
}

TEST(Literal, PatternsOfTheSameWidthStayAsTheyAre) {
  EXPECT_EQ(literal_bits(single(0x7f800001), Type::F32), 0x7f800001U);
  EXPECT_EQ(literal_bits(single(0x7f800001), Type::B32), 0x7f800001U);
  EXPECT_EQ(literal_bits(real(1.5), Type::B64), std::bit_cast<std::uint64_t>(1.5));
}

TEST(Literal, KindsThatDoNotFit) {
  EXPECT_EQ(literal_bits(integer(1), Type::F32), nothing);
  EXPECT_EQ(literal_bits(real(1.0), Type::U32), nothing);
  EXPECT_EQ(literal_bits(real(1.0), Type::B32), nothing);
  EXPECT_EQ(literal_bits(single(0), Type::B64), nothing);
  EXPECT_EQ(literal_bits(real(1.0), Type::F16), nothing);
  EXPECT_EQ(literal_bits(integer(1), Type::None), nothing);
}

}  // namespace
}  // namespace firebreak::ptx
