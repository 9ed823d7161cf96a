// SPDX-License-Identifier: Apache-2.0
// Strided boxes against all their bytes written out.
#include "kernels/access/overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::access {
namespace {

std::set<int> bytes_of(const StridedBox& box) {
  std::vector<int> starts{static_cast<int>(box.starts.base)};
  for (std::size_t i = 0; i < box.starts.axis_count; ++i) {
    std::vector<int> more;
    for (const int start : starts)
      for (int k = 0; k <= static_cast<int>(box.starts.axes[i].last); ++k)
        more.push_back(start + k * static_cast<int>(box.starts.axes[i].stride));
    starts = std::move(more);
  }
  std::set<int> bytes;
  for (const int start : starts)
    for (int k = 0; k < static_cast<int>(box.width_bytes); ++k) bytes.insert(start + k);
  return bytes;
}

StridedBox random_box(std::mt19937_64& random) {
  StridedBox box;
  box.starts = Affine::constant(static_cast<Wide>(random() % 200));
  box.width_bytes = static_cast<Wide>(1 + random() % 5);
  box.starts.axis_count = static_cast<std::uint8_t>(random() % 4);
  for (std::uint8_t i = 0; i < box.starts.axis_count; ++i) {
    const auto stride = static_cast<Wide>(random() % 33) - 16;
    box.starts.axes[i] = {i, stride == 0 ? Wide{64} : stride, static_cast<Wide>(1 + random() % 5)};
  }
  return box;
}

TEST(MayMeet, NeverDeniesACommonByte) {
  std::mt19937_64 random(test_seed());
  int apart = 0;
  int denied = 0;
  for (int i = 0; i < 5'000; ++i) {
    const StridedBox a = random_box(random);
    const StridedBox b = random_box(random);
    const std::set<int> of_a = bytes_of(a);
    bool meets = false;
    for (const int byte : bytes_of(b)) meets = meets || of_a.contains(byte);
    EXPECT_TRUE(!meets || may_meet(a, b));
    apart += meets ? 0 : 1;
    denied += may_meet(a, b) ? 0 : 1;
  }
  EXPECT_GT(denied, apart / 2);  // overlap is mostly seen as absent where there is none
}

TEST(MayMeet, RowsThatAlternateDoNot) {
  StridedBox left;
  left.width_bytes = 4;
  left.starts.axis_count = 2;
  left.starts.axes[0] = {0, 1024, 99};
  left.starts.axes[1] = {1, 4, 127};
  StridedBox right = left;
  right.starts.base = 512;
  EXPECT_FALSE(may_meet(left, right));
  right.starts.base = 508;
  EXPECT_TRUE(may_meet(left, right));
}

TEST(Affine, WhatGoesOverTheEdgeOfItsTypeIsNotKnown) {
  const Affine fits = Affine::range(0x1'0000'0000, 0x1'0000'0010, 1, 1);
  EXPECT_EQ(normalise(fits, 32, false, 2).high(), 0x10);
  EXPECT_EQ(normalise(fits, 32, false, 2).unknown, UnknownReason::None);
  const Affine wraps = Affine::range(0xFFFF'FFFF, 0x1'0000'0000, 1, 1);
  EXPECT_EQ(normalise(wraps, 32, false, 2).unknown, UnknownReason::Wrapped);
  EXPECT_EQ(normalise(wraps, 32, true, 2).low(), -1);
}

TEST(Affine, TheSameVariableCancels) {
  const Affine i = Affine::range(0, 100, 1, 7);
  EXPECT_TRUE(add(i, i, true, 32, 9).is_constant());
  EXPECT_EQ(add(i, Affine::range(0, 100, 1, 8), true, 32, 9).low(), -100);
}

}  // namespace
}  // namespace firebreak::access
