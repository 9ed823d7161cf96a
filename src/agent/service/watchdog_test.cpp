// SPDX-License-Identifier: Apache-2.0
#include "agent/service/watchdog.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

class WatchdogTest : public testing::Test {
 protected:
  static constexpr Milliseconds limit{1000};

  void pass(Milliseconds time) { now_ += time; }
  /// Somebody looks as often as wanted. True: it hangs, by some look.
  bool hangs_within(Milliseconds time) {
    for (Milliseconds passed{0}; passed < time; passed += period_) {
      pass(period_);
      if (watchdog_.hangs(now_)) return true;
    }
    return false;
  }

  Watchdog watchdog_{limit};
  Milliseconds period_ = std::chrono::duration_cast<Milliseconds>(watchdog_.between_looks());
  Monotonic now_{std::chrono::hours(1)};
};

TEST_F(WatchdogTest, WhoIsSilentForTheLimitHangs) {
  watchdog_.came_up(now_);
  EXPECT_FALSE(hangs_within(limit - period_));
  EXPECT_TRUE(hangs_within(period_));
}

TEST_F(WatchdogTest, ItIsSeenWithinTheLimitAndOneLook) {
  watchdog_.came_up(now_);
  pass(period_ / 2);
  watchdog_.note_sign(now_);
  const Monotonic hung = now_;
  pass(period_ / 2);
  ASSERT_FALSE(watchdog_.hangs(now_));
  ASSERT_TRUE(hangs_within(2 * limit));
  EXPECT_LE(now_ - hung, limit + period_);
}

TEST_F(WatchdogTest, WhoGivesSignsDoesNotHang) {
  watchdog_.came_up(now_);
  for (int sign = 0; sign < 100; ++sign) {
    EXPECT_FALSE(hangs_within(limit - period_));
    watchdog_.note_sign(now_);
  }
}

TEST_F(WatchdogTest, TheNextOneHasTwiceAsLongAndNoneMoreHoweverManyHang) {
  for (const int times : {1, 2, 2, 2, 2, 2}) {
    watchdog_.started();
    watchdog_.came_up(now_);
    EXPECT_FALSE(hangs_within(times * limit - period_)) << times;
    EXPECT_TRUE(hangs_within(period_)) << times;
    watchdog_.gives_up();
    EXPECT_FALSE(hangs_within(100 * limit)) << "it is being killed";
  }
}

/// The service has shown that its turns do not take that long.
TEST_F(WatchdogTest, AfterOneThatHasLivedForLongTheNextIsMissedAsSoonAsTheFirst) {
  watchdog_.came_up(now_);
  EXPECT_TRUE(hangs_within(limit));
  watchdog_.gives_up();
  watchdog_.came_up(now_);
  for (int signs = 1; signs < Watchdog::forgets; ++signs) {
    pass(limit);
    watchdog_.note_sign(now_);
  }
  EXPECT_EQ(watchdog_.limit(), 2 * limit);
  pass(limit);
  watchdog_.note_sign(now_);
  EXPECT_EQ(watchdog_.limit(), limit);
}

/// The service may wait for its driver all day. Signs that it gives meanwhile do not begin anything.
TEST_F(WatchdogTest, WhoIsNotUpYetIsNotMissed) {
  watchdog_.started();
  EXPECT_FALSE(hangs_within(100 * limit));
  watchdog_.note_sign(now_);
  EXPECT_FALSE(hangs_within(100 * limit));
  watchdog_.came_up(now_);
  EXPECT_TRUE(hangs_within(limit));
}

TEST_F(WatchdogTest, TheNextOneBeginsAnew) {
  watchdog_.came_up(now_);
  EXPECT_FALSE(hangs_within(limit - period_));
  watchdog_.started();
  EXPECT_FALSE(hangs_within(limit));
  watchdog_.came_up(now_);
  EXPECT_FALSE(hangs_within(limit - period_));
}

TEST_F(WatchdogTest, WhoSaidThatNoSignComesAnyMoreIsNotMissed) {
  watchdog_.came_up(now_);
  watchdog_.signs_end();
  EXPECT_FALSE(hangs_within(100 * limit));
}

/// A machine that stood still, or whoever looks: the service may have stood still as well.
TEST_F(WatchdogTest, TimeInWhichNobodyLookedIsNoSilence) {
  watchdog_.came_up(now_);
  for (int late = 0; late < 2; ++late) {
    pass(std::chrono::hours(8));
    EXPECT_FALSE(watchdog_.hangs(now_));
  }
  EXPECT_TRUE(hangs_within(limit)) << "it had its time since";
}

TEST_F(WatchdogTest, WhereItIsOffNobodyIsMissed) {
  watchdog_ = Watchdog(Nanoseconds(0));
  watchdog_.came_up(now_);
  EXPECT_FALSE(watchdog_.is_on());
  EXPECT_FALSE(hangs_within(100 * limit));
}

}  // namespace
}  // namespace firebreak::agent
