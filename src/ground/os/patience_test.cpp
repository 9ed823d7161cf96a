// SPDX-License-Identifier: Apache-2.0
#include "ground/os/patience.h"

#include <gtest/gtest.h>

namespace firebreak::os {
namespace {

constexpr Milliseconds reserve{600};

Monotonic at(Milliseconds time) { return Monotonic{} + std::chrono::hours(1) + time; }

TEST(PatienceTest, TheFirstIsGivenHalfOfIt) {
  Patience patience(reserve);
  EXPECT_EQ(patience.for_one(at(Milliseconds(0))), reserve / 2);
  EXPECT_EQ(patience.for_one(at(Milliseconds(0))), reserve / 2) << "nobody was waited for";
}

TEST(PatienceTest, AllTogetherAreNotWaitedForLonger) {
  Patience patience(reserve);
  Nanoseconds all{};
  for (int one = 0; one < 100; ++one) {
    const Nanoseconds time = patience.for_one(at(Milliseconds(0)));
    patience.waited(time);
    all += time;
  }
  EXPECT_LE(all, reserve);
  EXPECT_GE(all, reserve * 9 / 10);
}

TEST(PatienceTest, ItComesBackAndNeverBecomesMoreThanItWas) {
  Patience patience(reserve);
  (void)patience.for_one(at(Milliseconds(0)));
  patience.waited(2 * reserve);
  EXPECT_EQ(patience.for_one(at(Milliseconds(0))), Nanoseconds(0));
  EXPECT_EQ(patience.for_one(at(Milliseconds(1'000))), Milliseconds(50));
  EXPECT_EQ(patience.for_one(at(std::chrono::hours(1))), reserve / 2);
}

}  // namespace
}  // namespace firebreak::os
