// SPDX-License-Identifier: Apache-2.0
#include "program/guard/slabs.h"

#include <gmock/gmock.h>

#include "ground/base/units.h"

namespace firebreak::guard {
namespace {

using ::testing::Eq;
using ::testing::Optional;
constexpr std::uint64_t base = 0x4000'0000'0000;

TEST(Slabs, GivesAlignedPiecesThatDoNotOverlap) {
  Slabs slabs;
  slabs.add(base, 4096);
  EXPECT_THAT(slabs.take(1), Optional(Eq(base)));
  EXPECT_THAT(slabs.take(513), Optional(Eq(base + 512)));
  EXPECT_THAT(slabs.take(2560), Optional(Eq(base + 1536)));
  EXPECT_FALSE(slabs.take(1));
}

TEST(Slabs, FillsAGapThatWasFreed) {
  Slabs slabs;
  slabs.add(base, 2048);
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_THAT(slabs.take(512), Optional(Eq(base + n * 512)));
  EXPECT_TRUE(slabs.give(base + 512));
  EXPECT_TRUE(slabs.give(base + 1024));
  EXPECT_FALSE(slabs.take(1025));
  EXPECT_THAT(slabs.take(1024), Optional(Eq(base + 512)));
}

TEST(Slabs, AnEmptySlabIsGivenBack) {
  Slabs slabs;
  slabs.add(base, 2 * mib);
  slabs.add(base + gib, 2 * mib);
  EXPECT_THAT(slabs.take(mib), Optional(Eq(base)));
  EXPECT_THAT(slabs.take(512), Optional(Eq(base + mib)));
  EXPECT_THAT(slabs.take(2 * mib), Optional(Eq(base + gib)));
  const auto first = slabs.give(base);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size_bytes, mib);
  EXPECT_FALSE(first->empty);
  const auto last = slabs.give(base + mib);
  ASSERT_TRUE(last);
  EXPECT_THAT(last->empty, Optional(Eq(base)));
  EXPECT_FALSE(slabs.take(1));  // the other is full
}

TEST(Slabs, KnowsWhatIsNotItsOwn) {
  Slabs slabs;
  EXPECT_FALSE(slabs.give(base));
  slabs.add(base, 4096);
  ASSERT_TRUE(slabs.take(1024));
  EXPECT_FALSE(slabs.give(base + 512));
  EXPECT_TRUE(slabs.give(base));
  EXPECT_FALSE(slabs.give(base));
}

}  // namespace
}  // namespace firebreak::guard
