// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/run_limit.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

class RunLimitTest : public testing::Test {
 protected:
  static constexpr Milliseconds limit{100};
  static constexpr Milliseconds first_look{25};

  void SetUp() override {
    set(Milliseconds(0), Milliseconds(0));
    run_limit_.start({*loop_, kernel_}, limit,
                     {[] { return std::vector<pid_t>{4711}; }, [this] { return seen_; }},
                     [this] { ++calls_; });
  }
  void set(Milliseconds ran, Milliseconds waited, char state = 'S') {
    const std::string folder = "/proc/4711/task/4711";
    kernel_.set_file(folder + "/schedstat", std::to_string(Nanoseconds(ran).count()) + " " +
                                                std::to_string(Nanoseconds(waited).count()) + " 3\n");
    kernel_.set_file(folder + "/status", std::string("Name:\tprogram\nState:\t") + state + "\n");
  }
  void pass(Nanoseconds time) {
    clock_.advance(time);
    loop_->run_once(Milliseconds(0));
  }

  os::FakeKernel kernel_;
  FakeClock clock_;
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::create(&clock_).value();
  std::uint64_t seen_ = 0;
  int calls_ = 0;
  RunLimit run_limit_;
};

TEST_F(RunLimitTest, IsOverOnce) {
  pass(first_look);
  pass(limit - first_look - Milliseconds(1));
  EXPECT_EQ(calls_, 0);
  pass(Milliseconds(1));
  EXPECT_EQ(calls_, 1);
  pass(10 * limit);
  EXPECT_EQ(calls_, 1);
}

TEST_F(RunLimitTest, TimeForWhichAProcessorIsWaitedForDoesNotCount) {
  pass(first_look);
  Milliseconds waited{0};
  for (int i = 1; i < 20; ++i) {
    set(Milliseconds(i), waited += limit);
    pass(limit);
    ASSERT_EQ(calls_, 0) << i;
  }
  pass(limit);
  EXPECT_EQ(calls_, 1) << "it ran, or slept";
}

TEST_F(RunLimitTest, NorDoesAWaitThatGoesOn) {
  pass(first_look);
  set(Milliseconds(0), Milliseconds(0), 'R');
  pass(limit);
  pass(limit);
  EXPECT_EQ(calls_, 0);
}

TEST_F(RunLimitTest, NorDoesTheTimeThatWeAreLate) {
  pass(first_look);
  set(Milliseconds(0), Milliseconds(50));
  pass(100 * limit);
  EXPECT_EQ(calls_, 0) << "it has waited, and half of its time is left";
}

TEST_F(RunLimitTest, BeginsAnewWithAllThatIsSeenToGoOn) {
  for (int i = 0; i < 20; ++i) {
    ++seen_;
    pass(limit);
    ASSERT_EQ(calls_, 0) << i;
  }
  pass(limit);
  pass(limit);
  EXPECT_EQ(calls_, 1);
}

TEST_F(RunLimitTest, WhatIsCancelledIsNotOver) {
  run_limit_.cancel();
  for (int i = 0; i < 3; ++i) pass(limit);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace firebreak::agent
