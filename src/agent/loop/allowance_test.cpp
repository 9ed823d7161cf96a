// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/allowance.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

class AllowanceTest : public testing::Test {
 protected:
  Nanoseconds wait() const { return allowance.wait(clock.now()); }
  void spend(Milliseconds time) { allowance.spend(time, clock.now()); }

  FakeClock clock;
  Allowance allowance{{.share = 0.1, .at_once = Milliseconds(50), .longest_wait = Milliseconds(1000)}};
};

TEST_F(AllowanceTest, WhoTakesNoMoreThanItsShareNeverWaits) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(wait(), Nanoseconds(0));
    spend(Milliseconds(10));
    clock.advance(Milliseconds(100));
  }
}

TEST_F(AllowanceTest, AtOnceOneMayTakeMore) {
  spend(Milliseconds(50));
  EXPECT_EQ(wait(), Nanoseconds(0));
  spend(Milliseconds(30));
  EXPECT_EQ(wait(), Milliseconds(300));
  clock.advance(Milliseconds(299));
  EXPECT_GT(wait(), Nanoseconds(0));
  clock.advance(Milliseconds(1));
  EXPECT_EQ(wait(), Nanoseconds(0));
}

TEST_F(AllowanceTest, HoweverLongItTookNobodyWaitsForLong) {
  for (int i = 0; i < 10; ++i) spend(Milliseconds(10'000));
  EXPECT_EQ(wait(), Milliseconds(1'000));
  clock.advance(Milliseconds(1'000));
  EXPECT_EQ(wait(), Nanoseconds(0));
}

TEST_F(AllowanceTest, WhatWasNotTakenIsNotKept) {
  clock.advance(Milliseconds(1'000'000));
  spend(Milliseconds(60));
  EXPECT_EQ(wait(), Milliseconds(100));
}

TEST_F(AllowanceTest, ItIsWholeOnceAllOfItIsThereAgain) {
  EXPECT_TRUE(allowance.is_whole(clock.now()));
  spend(Milliseconds(10));
  clock.advance(Milliseconds(99));
  EXPECT_FALSE(allowance.is_whole(clock.now()));
  clock.advance(Milliseconds(1));
  EXPECT_TRUE(allowance.is_whole(clock.now()));
}

}  // namespace
}  // namespace firebreak::agent
