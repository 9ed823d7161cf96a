// SPDX-License-Identifier: Apache-2.0
// Holes never overlap, always have guard ranges around them, and the books are right: for chosen cases and at
// random.
#include "program/guard/arena.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::guard {
namespace {

using os::AddressRange;
constexpr std::uint64_t granule = Arena::granule_bytes;
constexpr std::uint64_t base = 0x4000'0000'0000;

Arena arena_of(std::uint64_t granules) {
  Arena arena;
  arena.add({base, base + granules * granule});
  return arena;
}

TEST(Arena, KeepsGuardRangesOnBothSidesOfAHole) {
  Arena arena = arena_of(5);
  EXPECT_EQ(arena.take(1), (AddressRange{base + granule, base + 2 * granule}));
  EXPECT_EQ(arena.take(granule), (AddressRange{base + 3 * granule, base + 4 * granule}));
  EXPECT_FALSE(arena.take(1));
  EXPECT_EQ(arena.guard_range_bytes(), 3 * granule);
}

TEST(Arena, UsesAFreedPlaceLast) {
  Arena arena = arena_of(16);
  const auto first = arena.take(1);
  const auto second = arena.take(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(arena.give(first->begin), first);
  const auto third = arena.take(1);
  ASSERT_TRUE(third);
  EXPECT_GT(third->begin, second->begin);
  std::optional<AddressRange> last;
  while (const auto hole = arena.take(1)) last = hole;
  EXPECT_EQ(last, first);
}

TEST(Arena, GivesBackOnlyWhatItGave) {
  Arena arena = arena_of(8);
  const auto hole = arena.take(2 * granule);
  ASSERT_TRUE(hole);
  EXPECT_FALSE(arena.give(hole->begin + granule));
  EXPECT_TRUE(arena.give(hole->begin));
  EXPECT_FALSE(arena.give(hole->begin));
  EXPECT_EQ(arena.guard_range_bytes(), 8 * granule);
}

TEST(Arena, RefusesSizesThatNoAddressSpaceHas) {
  Arena arena = arena_of(8);
  EXPECT_FALSE(arena.take(0));
  EXPECT_FALSE(arena.take(~std::uint64_t{0}));
}

TEST(Arena, HoldsItsRulesThroughTenThousandRandomSteps) {
  std::mt19937_64 random(test_seed());
  Arena arena = arena_of(64);
  arena.add({base + gib, base + gib + 32 * granule});
  std::map<std::uint64_t, std::uint64_t> holes;
  for (int step = 0; step < 10'000; ++step) {
    if (random() % 2 == 0) {
      const auto hole = arena.take((random() % 6 + 1) * granule - random() % 3);
      if (!hole) continue;
      EXPECT_TRUE(holes.emplace(hole->begin, hole->end).second);
    } else if (!holes.empty()) {
      const auto chosen = std::next(holes.begin(), static_cast<std::ptrdiff_t>(random() % holes.size()));
      EXPECT_EQ(arena.give(chosen->first), (AddressRange{chosen->first, chosen->second}));
      holes.erase(chosen);
    }
    std::uint64_t sum = 0;
    std::uint64_t before = 0;
    for (const auto& [begin, end] : holes) {
      ASSERT_GE(begin, before + granule) << "no guard ranges in front of the hole";
      ASSERT_TRUE(arena.owns(begin - granule) && arena.owns(end + granule - 1)) << "a hole at an edge";
      sum += end - begin;
      before = end;
    }
    ASSERT_EQ(arena.guard_range_bytes(), 96 * granule - sum);
  }
}

}  // namespace
}  // namespace firebreak::guard
