// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/address_ranges.h"

#include <gtest/gtest.h>

#include <array>

namespace firebreak::softgpu::driver {
namespace {

constexpr std::uint64_t page = 0x10000;

TEST(AddressRanges, AWishIsGrantedAnywhereThatIsFree) {
  AddressRanges ranges;
  for (const std::uint64_t hint :
       {AddressRanges::lowest, std::uint64_t{0x7000dead0000}, AddressRanges::highest - page}) {
    const auto range = ranges.take(page, page, hint);
    ASSERT_TRUE(range);
    EXPECT_EQ(range->begin, hint);
  }
  const auto taken = ranges.take(page, page, AddressRanges::lowest);
  ASSERT_TRUE(taken);
  EXPECT_GE(taken->begin, AddressRanges::arena_begin);
  EXPECT_GE(ranges.take(page, page, AddressRanges::highest)->begin, AddressRanges::arena_begin);
}

TEST(AddressRanges, RangesInTheArenaDoNotOverlapAndComeBack) {
  AddressRanges ranges;
  const auto below = ranges.take(4 * page, page, AddressRanges::arena_begin - page);
  ASSERT_TRUE(below);
  const auto one = ranges.take(page, page, 0);
  const auto two = ranges.take(page, 16 * page, 0);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->begin, below->end());
  EXPECT_GE(two->begin, one->end());
  EXPECT_EQ(two->begin % (16 * page), 0u);
  EXPECT_EQ(ranges.find(one->begin + page - 1)->begin, one->begin);
  EXPECT_FALSE(ranges.give(one->begin, 2 * page));
  EXPECT_TRUE(ranges.give(one->begin, page));
  EXPECT_FALSE(ranges.find(one->begin));
  EXPECT_EQ(ranges.take(page, page, 0)->begin, one->begin);
}

TEST(AddressRanges, MoreThanThereIsIsRefused) {
  AddressRanges ranges;
  ASSERT_TRUE(ranges.take(page, page, 0));
  EXPECT_FALSE(ranges.take(AddressRanges::arena_end, page, 0));
  EXPECT_FALSE(ranges.take(~std::uint64_t{0} - page, page, page));
}

TEST(AddressRanges, WhatOthersHoldIsNotFree) {
  constexpr std::uint64_t unit = 0x100000;
  AddressRanges ranges;
  const std::array<AddressRange, 2> theirs{
      {{AddressRanges::arena_begin, 4 * unit}, {AddressRanges::arena_begin + 8 * unit, unit}}};
  const FindObstacle others = [&](const AddressRange& range) -> std::optional<std::uint64_t> {
    for (const AddressRange& their : theirs) {
      if (their.begin < range.end() && their.end() > range.begin) return their.end();
    }
    return std::nullopt;
  };
  EXPECT_EQ(ranges.take(2 * unit, 2 * unit, 0, others)->begin, AddressRanges::arena_begin + 4 * unit);
  EXPECT_EQ(ranges.take(4 * unit, 2 * unit, 0, others)->begin, AddressRanges::arena_begin + 10 * unit);
  const auto elsewhere = ranges.take(unit, unit, AddressRanges::arena_begin + 8 * unit, others);
  EXPECT_EQ(elsewhere->begin, AddressRanges::arena_begin + 6 * unit);
  EXPECT_EQ(ranges.take(unit, unit, AddressRanges::arena_begin + 8 * unit)->begin,
            AddressRanges::arena_begin + 8 * unit);
}

}  // namespace
}  // namespace firebreak::softgpu::driver
