// SPDX-License-Identifier: Apache-2.0
#include "program/guard/margins.h"

#include <gmock/gmock.h>

namespace firebreak::guard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Range = os::AddressRange;

constexpr std::uint64_t base = 0x2000'0000'0000;
constexpr std::uint64_t plenty = 1024 * gib;

std::vector<Range> plan(Margins& margins, Range around, std::vector<Range> taken,
                        std::uint64_t room_bytes = plenty) {
  return margins.plan(around, taken, room_bytes);
}

TEST(Margins, ReachToBothSidesOfAnAllocation) {
  Margins margins({});
  const Range allocation{base, base + 4 * mib};
  EXPECT_FALSE(margins.knows(allocation));
  const auto planned = plan(margins, allocation, {allocation});
  EXPECT_THAT(planned, ElementsAre(Range{base + 4 * mib, base + 80 * gib}, Range{base - 64 * gib, base}));
  EXPECT_TRUE(margins.knows(allocation));
  EXPECT_TRUE(margins.knows({base + 8 * gib, base + 16 * gib}));
  EXPECT_FALSE(margins.knows({base + 8 * gib, base + 16 * gib + 1}));
}

TEST(Margins, AreNotLaidTwice) {
  Margins margins({});
  const Range allocation{base, base + 4 * mib};
  for (const Range& margin : plan(margins, allocation, {allocation})) margins.laid(margin);
  const Range next{base + 32 * gib, base + 32 * gib + 4 * mib};
  EXPECT_THAT(plan(margins, next, {allocation, next}), ElementsAre(Range{base + 80 * gib, base + 112 * gib}));
}

TEST(Margins, LeaveWhatSomebodyHasAndWholePagesOfTheGpuAroundIt) {
  Margins margins({});
  const Range allocation{base, base + 4 * mib};
  const Range page{base + gib + 4096, base + gib + 8192};
  EXPECT_THAT(plan(margins, allocation, {allocation, page}),
              ElementsAre(Range{base + gib + 2 * mib, base + 80 * gib}, Range{base - 64 * gib, base},
                          Range{base + 4 * mib, base + gib}));
}

TEST(Margins, StayBetweenTheLowestAndTheHighestAddress) {
  MarginSettings settings;
  settings.lowest = base - gib;
  settings.highest = base + gib;
  Margins margins(settings);
  EXPECT_THAT(plan(margins, {base, base + 2 * mib}, {{base, base + 2 * mib}}),
              ElementsAre(Range{base - gib, base}, Range{base + 2 * mib, base + gib}));
  EXPECT_THAT(plan(margins, {0, 4096}, {}), IsEmpty());
}

TEST(Margins, TakeNoMoreThanThereIsRoomFor) {
  Margins margins({});
  const Range allocation{base, base + 4 * mib};
  EXPECT_THAT(plan(margins, allocation, {allocation}, 70 * gib), ElementsAre(Range{base - 64 * gib, base}));
  MarginSettings settings;
  settings.bytes_max = 100 * gib;
  Margins bounded(settings);
  for (const Range& margin : plan(bounded, allocation, {allocation})) bounded.laid(margin);
  EXPECT_LE(bounded.bytes(), 100 * gib);
  settings.ranges_max = 1;
  Margins few(settings);
  EXPECT_THAT(plan(few, allocation, {allocation}), testing::SizeIs(1));
}

TEST(Margins, GiveWayToWhoWantsTheirAddresses) {
  Margins margins({});
  const Range allocation{base, base + 4 * mib};
  for (const Range& margin : plan(margins, allocation, {allocation})) margins.laid(margin);
  const std::uint64_t before = margins.bytes();
  const Range wanted{base + gib, base + 2 * gib};
  EXPECT_THAT(margins.give_way(wanted), ElementsAre(wanted));
  EXPECT_EQ(margins.bytes(), before - gib);
  EXPECT_THAT(margins.give_way(wanted), IsEmpty());
  EXPECT_THAT(margins.all(),
              testing::UnorderedElementsAre(Range{base - 64 * gib, base}, Range{base + 4 * mib, base + gib},
                                            Range{base + 2 * gib, base + 80 * gib}));
}

TEST(Margins, AreNoneWhereNoReachIsWanted) {
  MarginSettings settings;
  settings.reach_bytes = 0;
  Margins margins(settings);
  EXPECT_TRUE(margins.knows({base, base + mib}));
  EXPECT_THAT(plan(margins, {base, base + mib}, {}), IsEmpty());
}

}  // namespace
}  // namespace firebreak::guard
