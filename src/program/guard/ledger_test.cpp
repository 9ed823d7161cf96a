// SPDX-License-Identifier: Apache-2.0
// Tests of what a tenant writes in its guard page, read as the outside reads it.
#include "program/guard/ledger.h"

#include <gmock/gmock.h>

#include "ground/base/units.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::guard {
namespace {

using abi::GuardFunction;

const Monotonic now = from_ns(1'000'000);

class LedgerTest : public ::testing::Test {
 protected:
  static Ledger make_ledger() {
    auto ledger = Ledger::create();
    EXPECT_TRUE(ledger);
    return std::move(*ledger);
  }
  static GuardView view_of(const Ledger& ledger) {
    auto view = GuardView::of(ledger.descriptor());
    EXPECT_TRUE(view);
    return std::move(*view);
  }
  std::string nearest(std::uint64_t address) const {
    const auto found = view_.nearest(address);
    return found ? describe(*found) : "nothing";
  }

  Ledger ledger_ = make_ledger();
  GuardView view_ = view_of(ledger_);
};

constexpr std::uint64_t base = 0x4000'0000'0000;

TEST_F(LedgerTest, AStrayIsToldFromTheAllocationThatItMissed) {
  ledger_.allocated(GuardFunction::MemAlloc, base, 64 * mib);
  ledger_.allocated(GuardFunction::MemMap, base + gib, 3000);
  EXPECT_EQ(nearest(base + 64 * mib + 72),
            "72 bytes past the end of a 64 MiB allocation made by cuMemAlloc, call 1");
  EXPECT_EQ(nearest(base + gib - 1),
            "1 byte before the begin of a 3000 byte allocation made by cuMemMap, call 2");
  EXPECT_EQ(nearest(base + gib + 5), "5 bytes into a 3000 byte allocation made by cuMemMap, call 2");
}

TEST_F(LedgerTest, WhatWasFreedIsNamedWhereItLay) {
  ledger_.allocated(GuardFunction::MemAlloc, base, 2 * mib);
  ledger_.allocated(GuardFunction::MemAlloc, base + 4 * mib, 2 * mib);
  ledger_.freed(base);
  EXPECT_EQ(nearest(base + 16),
            "16 bytes into a 2 MiB allocation made by cuMemAlloc, call 1, freed by freeing call 1");
  EXPECT_EQ(nearest(base + 2 * mib),  // not "directly behind the freed one"
            "2097152 bytes before the begin of a 2 MiB allocation made by cuMemAlloc, call 2");
}

TEST_F(LedgerTest, OfTwoFreedInTheSamePlaceTheLaterOneIsNamed) {
  for (int round = 0; round < 2; ++round) {
    ledger_.allocated(GuardFunction::MemAlloc, base, 2 * mib);
    ledger_.freed(base);
  }
  EXPECT_EQ(nearest(base),
            "0 bytes into a 2 MiB allocation made by cuMemAlloc, call 2, freed by freeing call 2");
}

TEST_F(LedgerTest, NothingIsNamedFromFarAway) {
  EXPECT_EQ(nearest(base), "nothing");
  ledger_.allocated(GuardFunction::MemAlloc, base, 2 * mib);
  EXPECT_EQ(nearest(base + 2 * mib + nearest_bytes_max + 1), "nothing");
  EXPECT_NE(nearest(base + 2 * mib + nearest_bytes_max), "nothing");
}

TEST_F(LedgerTest, NobodyFreesWhatIsNotThere) {
  ledger_.freed(base);
  EXPECT_EQ(nearest(base), "nothing");
  ledger_.allocated(GuardFunction::MemAlloc, base, 1);
  ledger_.freed(base + 1);
  EXPECT_EQ(nearest(base), "0 bytes into a 1 byte allocation made by cuMemAlloc, call 1");
  ledger_.freed(base);
  ledger_.freed(base);
  EXPECT_EQ(nearest(base),
            "0 bytes into a 1 byte allocation made by cuMemAlloc, call 1, freed by freeing call 3");
}

TEST_F(LedgerTest, AFullPageForgetsWhatWasFreedFirst) {
  const auto address = [](std::size_t n) { return base + n * 4 * mib; };
  for (std::size_t n = 0; n < abi::guard_allocations_max; ++n) {
    ledger_.allocated(GuardFunction::MemAlloc, address(n), mib);
  }
  ledger_.freed(address(7));
  ledger_.freed(address(8));
  ledger_.allocated(GuardFunction::MemAlloc, address(70'000), mib);
  EXPECT_THAT(nearest(address(8)), ::testing::HasSubstr("freed by freeing call 2"));
  EXPECT_THAT(nearest(address(7)), ::testing::Not(::testing::HasSubstr("into")));
  EXPECT_THAT(nearest(address(70'000)), ::testing::HasSubstr("call 32769"));
}

TEST_F(LedgerTest, CoversWhatItSaysAndNoMore) {
  EXPECT_FALSE(view_.covers(base, now));
  EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
  EXPECT_TRUE(view_.covers(base, now));
  EXPECT_TRUE(view_.covers(base + gib - 1, now));
  EXPECT_FALSE(view_.covers(base + gib, now));
  EXPECT_EQ(view_.guard_range_bytes(), gib);
}

// The reservation is one as a tenant may write it: it is read in the agent, and the last moment plus one
// second is none.
TEST_F(LedgerTest, AReservationThatIsGivenBackAtTheEndOfTimeIsCovered) {
  EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
  ledger_.uncovered(base, base + gib, gib, Monotonic::max());
  EXPECT_TRUE(view_.covers(base, now));
}

TEST_F(LedgerTest, AReservationThatIsGivenBackIsCoveredNoLonger) {
  EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
  EXPECT_TRUE(ledger_.covered(base + gib, base + 2 * gib, 2 * gib));
  ledger_.uncovered(base, base + gib, gib, now);
  EXPECT_TRUE(view_.covers(base, now + Milliseconds(100)));  // a stray of before may be heard only then
  EXPECT_FALSE(view_.covers(base, now + Milliseconds(1000)));
  EXPECT_TRUE(view_.covers(base + gib, now + Milliseconds(1000)));
  for (std::size_t n = 1; n < abi::guard_ranges_max; ++n) EXPECT_TRUE(ledger_.covered(base, base + 4096, 0));
  EXPECT_FALSE(ledger_.covered(base, base + 4096, 0));
}

TEST_F(LedgerTest, TheLastWordOfARangeStaysAsLongAsThereIsRoom) {
  EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
  ledger_.uncovered(base, base + gib, 0, now);
  for (std::size_t n = 1; n < abi::guard_ranges_max; ++n)
    EXPECT_TRUE(ledger_.covered(base + gib, base + 2 * gib, 0));
  EXPECT_TRUE(view_.covers(base, now));
  EXPECT_TRUE(ledger_.covered(base + 2 * gib, base + 3 * gib, 0));
  EXPECT_FALSE(view_.covers(base, now));
  EXPECT_TRUE(view_.covers(base + 2 * gib, now + Milliseconds(5000)));
}

TEST_F(LedgerTest, ItsStateHasItsReason) {
  EXPECT_EQ(view_.state(), abi::GuardState::Starting);
  ledger_.set_state(abi::GuardState::Off, "no UVM descriptor");
  EXPECT_EQ(view_.state(), abi::GuardState::Off);
  EXPECT_EQ(view_.note(), "no UVM descriptor");
  ledger_.set_state(abi::GuardState::On, std::string(1000, 'x'));
  EXPECT_EQ(view_.note().size(), abi::guard_note_bytes - 1);
}

TEST(GuardView, AnotherFileIsNoGuardPage) {
  const auto small = os::create_memory_file("firebreak-guard", 4096);
  ASSERT_TRUE(small);
  EXPECT_FALSE(GuardView::of(small->get()));
  const auto empty = os::create_memory_file("firebreak-guard", sizeof(abi::GuardPage));
  ASSERT_TRUE(empty);
  EXPECT_FALSE(GuardView::of(empty->get()));
  const auto growing =
      os::create_memory_file("firebreak-guard", sizeof(abi::GuardPage), os::MemorySeal::None);
  ASSERT_TRUE(growing);
  EXPECT_FALSE(GuardView::of(growing->get()));
}

}  // namespace
}  // namespace firebreak::guard
