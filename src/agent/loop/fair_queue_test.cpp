// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace firebreak::agent {
namespace {

using testing::ElementsAre;

constexpr uid_t alice = 1001, mallory = 1002;

class FairQueueTest : public testing::Test {
 protected:
  /// What is done for each takes so long.
  Nanoseconds each_takes = std::chrono::milliseconds(100);
  std::vector<pid_t> done;
  FakeClock clock;
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create(&clock).value());
  FairQueue queue{*loop, clock, [this](pid_t pid) {
                    done.push_back(pid);
                    clock.advance(each_takes);
                  }};

  void put_many(uid_t user, pid_t first, int count) {
    for (int i = 0; i < count; ++i) queue.put(user, first + i);
  }
  bool is_done(pid_t pid) const { return std::ranges::count(done, pid) == 1; }
};

TEST_F(FairQueueTest, WhatCostsNothingIsDoneAtOnce) {
  each_takes = Nanoseconds(0);
  put_many(mallory, 1, 40);
  EXPECT_EQ(done.size(), 40u);
}

TEST_F(FairQueueTest, ManyThatCostTimeDoNotStopTheLoop) {
  put_many(mallory, 1, 40);
  EXPECT_THAT(done, ElementsAre(1));
  loop->run_once(Milliseconds(0));
  EXPECT_LE(done.size(), 2u) << "one a turn";
}

TEST_F(FairQueueTest, WhatOneUserHasPutDoesNotKeepAnotherWaiting) {
  put_many(mallory, 1, 40);
  loop->run_once(Milliseconds(0));
  const std::size_t before = done.size();
  queue.put(alice, 100);
  for (int i = 0; i < 2 && !is_done(100); ++i) loop->run_once(Milliseconds(0));
  EXPECT_TRUE(is_done(100));
  EXPECT_LE(done.size(), before + 2) << "at most one other was before it";
}

TEST_F(FairQueueTest, OneUserTakesNoMoreThanItsShareOfTheTime) {
  const Monotonic begin = clock.now();
  put_many(mallory, 1, 40);
  while (done.size() < 40) {
    if (!loop->run_once(Milliseconds(0))) clock.advance(std::chrono::milliseconds(10));
  }
  // 4 s of work, at half of the time but for what it may have at once.
  EXPECT_GE(clock.now() - begin, std::chrono::milliseconds(7'000));
}

/// Whatever is put, and whenever, is done once, and of one user in its order.
TEST_F(FairQueueTest, EverythingIsDoneOnceAndInItsOrder) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    done.clear();
    std::vector<pid_t> of_alice, of_mallory;
    unsigned random = seed;
    for (pid_t pid = 1; pid <= 60; ++pid) {
      random = random * 1664525U + 1013904223U;
      each_takes = std::chrono::microseconds(random >> 16);
      const bool is_alice = (random >> 8) % 3 == 0;
      (is_alice ? of_alice : of_mallory).push_back(pid);
      queue.put(is_alice ? alice : mallory, pid);
      if ((random >> 4) % 4 == 0) loop->run_once(Milliseconds(0));
    }
    for (int i = 0; i < 100'000 && done.size() < 60; ++i) {
      if (!loop->run_once(Milliseconds(0))) clock.advance(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(done.size(), 60u) << "seed " << seed;
    const auto in_order = [&](const std::vector<pid_t>& put) {
      std::vector<pid_t> its;
      std::ranges::copy_if(done, std::back_inserter(its),
                           [&](pid_t pid) { return std::ranges::count(put, pid) > 0; });
      return its;
    };
    EXPECT_EQ(in_order(of_alice), of_alice) << "seed " << seed;
    EXPECT_EQ(in_order(of_mallory), of_mallory) << "seed " << seed;
  }
}

TEST_F(FairQueueTest, WhatIsSettledIsDoneNowAndNotAgain) {
  put_many(mallory, 1, 5);
  queue.settle(4);
  EXPECT_THAT(done, ElementsAre(1, 4));
  EXPECT_FALSE(queue.waits(4));
  EXPECT_TRUE(queue.waits(5));
  while (done.size() < 5) {
    if (!loop->run_once(Milliseconds(0))) clock.advance(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(done, ElementsAre(1, 4, 2, 3, 5));
}

}  // namespace
}  // namespace firebreak::agent
