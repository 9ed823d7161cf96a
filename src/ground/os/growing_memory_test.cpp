// SPDX-License-Identifier: Apache-2.0
#include "ground/os/growing_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ground/base/units.h"

namespace firebreak::os {
namespace {

std::vector<std::byte> bytes_of(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

TEST(GrowingMemory, WhatIsThereStaysWhereItIs) {
  GrowingMemory memory(64 * mib);
  ASSERT_EQ(memory.add(bytes_of(10, 1)), 10u);
  const std::byte* const first = memory.all().data();
  for (int i = 2; i < 12; ++i) ASSERT_EQ(memory.add(bytes_of(5 * mib, i)), 5 * mib);
  EXPECT_EQ(memory.all().data(), first);
  ASSERT_EQ(memory.size(), 10 + 50 * mib);
  EXPECT_EQ(memory.all()[9], std::byte{1});
  for (int i = 2; i < 12; ++i) {
    const auto piece = memory.all().subspan(10 + static_cast<std::size_t>(i - 2) * 5 * mib, 5 * mib);
    EXPECT_EQ(std::ranges::count(piece, static_cast<std::byte>(i)),
              static_cast<std::ptrdiff_t>(piece.size()));
  }
}

TEST(GrowingMemory, BeyondItsRoomNothingIsAdded) {
  GrowingMemory memory(mib + 4096);
  EXPECT_EQ(memory.add(bytes_of(mib, 1)), mib);
  EXPECT_EQ(memory.add(bytes_of(5000, 2)), 4096u);
  EXPECT_EQ(memory.add(bytes_of(1, 3)), 0u);
  EXPECT_EQ(memory.all().back(), std::byte{2});
}

TEST(GrowingMemory, WhatWasMovedOrClearedIsEmptyAndGrowsAnew) {
  GrowingMemory first(mib);
  first.add(bytes_of(7, 1));
  GrowingMemory second = std::move(first);
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(second.size(), 7u);
  first.add(bytes_of(3, 2));
  second = std::move(first);
  EXPECT_EQ(second.size(), 3u);
  second.clear();
  EXPECT_TRUE(second.all().empty());
  EXPECT_EQ(second.add(bytes_of(2, 3)), 2u);
}

}  // namespace
}  // namespace firebreak::os
