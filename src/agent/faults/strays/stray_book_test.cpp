// SPDX-License-Identifier: Apache-2.0
// Tests of which page faults of a guarded process are strays, and which of those are news.
#include "agent/faults/strays/stray_book.h"

#include <gmock/gmock.h>

#include "ground/base/units.h"
#include "program/guard/ledger.h"

namespace firebreak::strays {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t base = 0x4000'0000'0000;

class StrayBookTest : public testing::Test {
 protected:
  StrayBookTest() {
    EXPECT_TRUE(ledger_.covered(base, base + 64 * gib, 64 * gib));
    ledger_.allocated(abi::GuardFunction::MemAlloc, base, 64 * mib);
  }
  static watch::PageFault page_fault(std::uint64_t address, const std::string& access = "store") {
    watch::PageFault seen;
    seen.fault.pid = 4711;
    seen.fault.tenant = "decode";
    seen.fault.address = address;
    seen.access = access;
    return seen;
  }
  bool note(std::uint64_t address) { return book_.note(page_fault(address), view_); }

  guard::Ledger ledger_ = guard::Ledger::create().value();
  guard::GuardView view_ = guard::GuardView::of(ledger_.descriptor()).value();
  StrayBook book_;
};

constexpr std::uint64_t end = base + 64 * mib;

TEST_F(StrayBookTest, AStrayIsToldWithWhatItMissed) {
  EXPECT_TRUE(note(end + 72));
  EXPECT_TRUE(book_.is_waiting());
  const auto strays = book_.confirm(view_);
  ASSERT_THAT(strays, SizeIs(1));
  EXPECT_EQ(strays[0].pid, 4711);
  EXPECT_EQ(strays[0].tenant, "decode");
  EXPECT_EQ(describe(strays[0]),
            "store to 0x400004000048, 72 bytes past the end of a 64 MiB allocation made by cuMemAlloc, "
            "call 1");
  EXPECT_FALSE(book_.is_waiting());
}

TEST_F(StrayBookTest, APageFaultThatTheGuardRangesDoNotCoverIsNothing) {
  EXPECT_FALSE(note(base - 4096));
  EXPECT_FALSE(book_.is_waiting());
  EXPECT_EQ(book_.count(), 0u);
}

TEST_F(StrayBookTest, AStrayIsOneThoughTheDriverGotItsAddressesBackBeforeItWasHeard) {
  const Monotonic now = SystemClock().now();
  ledger_.uncovered(base, base + 64 * gib, 0, now);
  watch::PageFault late = page_fault(end + 72), later = page_fault(end + gib);
  late.fault.when = now + Milliseconds(5);
  later.fault.when = now + Milliseconds(5000);
  EXPECT_FALSE(book_.note(later, view_));
  EXPECT_TRUE(book_.note(late, view_));
}

TEST_F(StrayBookTest, APageFaultInManagedMemoryOfItsOwnIsNothingUntilThatIsFreed) {
  ledger_.allocated(abi::GuardFunction::MemAllocManaged, base + gib, mib);
  EXPECT_FALSE(note(base + gib + 5));
  ledger_.freed(base + gib);
  EXPECT_TRUE(note(base + gib + 5));
}

TEST_F(StrayBookTest, RepeatsInABlockAreCountedAndNotRepeated) {
  note(end);
  EXPECT_THAT(book_.confirm(view_), SizeIs(1));
  EXPECT_FALSE(note(end + block_bytes - 1));
  EXPECT_FALSE(book_.is_waiting());
  EXPECT_TRUE(note(end + block_bytes));
  const auto strays = book_.confirm(view_);
  ASSERT_THAT(strays, SizeIs(1));
  EXPECT_EQ(strays[0].count, 3u);
  EXPECT_EQ(strays[0].blocks, 2u);
}

TEST_F(StrayBookTest, WhatIsFatalWasNotContained) {
  note(end + 8);
  book_.note_fatal(end);  // UVM tells the page
  EXPECT_FALSE(book_.is_waiting());
  EXPECT_THAT(book_.confirm(view_), IsEmpty());
  EXPECT_EQ(book_.count(), 0u);
  EXPECT_TRUE(note(end + 8));
  book_.note_fatal(end + block_bytes);
  EXPECT_THAT(book_.confirm(view_), SizeIs(1));
}

TEST_F(StrayBookTest, WhoeverComesWhileAnotherWaitsWaitsAWholeTimeToo) {
  EXPECT_TRUE(note(end));
  EXPECT_FALSE(note(end + gib));  // nobody has to be woken a second time
  EXPECT_THAT(book_.confirm(view_), ElementsAre(testing::Field(&Stray::address, end)));
  ASSERT_TRUE(book_.is_waiting());
  EXPECT_THAT(book_.confirm(view_), ElementsAre(testing::Field(&Stray::address, end + gib)));
  EXPECT_FALSE(book_.is_waiting());
}

TEST_F(StrayBookTest, AFloodIsOnlyCounted) {
  for (std::uint64_t block = 0; block < StrayBook::blocks_max + 10; ++block) {
    note(base + 32 * gib + block * block_bytes);
    book_.confirm(view_);
  }
  EXPECT_EQ(book_.blocks(), StrayBook::blocks_max);
  EXPECT_EQ(book_.count(), StrayBook::blocks_max + 10);
}

TEST(Stray, FarFromEverythingIsSaid) {
  Stray stray;
  stray.address = 0x40;
  stray.access = "load";
  EXPECT_EQ(describe(stray), "load to 0x40, far from every allocation");
}

TEST(Stray, ANoteThatATenantWroteBreaksNoLine) {
  const GuardReport guard{abi::GuardState::Off, "no\nUVM \xff", 0};
  EXPECT_EQ(text_of(7, guard), "guard of process 7: off: no?UVM ?");
  EXPECT_EQ(json_of(7, guard).find('\n'), std::string::npos);
  EXPECT_EQ(describe(GuardReport{abi::GuardState::On, "", 1536 * gib}), "on, 1536 GiB");
}

}  // namespace
}  // namespace firebreak::strays
