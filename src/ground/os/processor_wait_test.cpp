// SPDX-License-Identifier: Apache-2.0
#include "ground/os/processor_wait.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::os {
namespace {

class ProcessorWaitTest : public testing::Test {
 protected:
  static constexpr pid_t pid = 4711;

  void set(pid_t thread, Milliseconds ran, Milliseconds waited, char state = 'S') {
    const std::string folder = "/proc/4711/task/" + std::to_string(thread);
    kernel_.set_file(folder + "/schedstat", std::to_string(Nanoseconds(ran).count()) + " " +
                                                std::to_string(Nanoseconds(waited).count()) + " 3\n");
    kernel_.set_file(folder + "/status", std::string("Name:\tprogram\nState:\t") + state + "\n");
  }
  Nanoseconds until(Milliseconds now) { return wait_->until(kernel_, Monotonic{} + now); }
  void begin() { wait_.emplace(kernel_, pid, Monotonic{}); }

  FakeKernel kernel_;
  std::optional<ProcessorWait> wait_;
};

TEST_F(ProcessorWaitTest, CountsWhatIsWaitedFromItsBeginningOn) {
  set(pid, Milliseconds(10), Milliseconds(500));
  begin();
  EXPECT_EQ(until(Milliseconds(1)), Nanoseconds(0));
  set(pid, Milliseconds(20), Milliseconds(530));
  EXPECT_EQ(until(Milliseconds(50)), Milliseconds(30));
}

TEST_F(ProcessorWaitTest, ThatOfTheThreadThatWaitsLongestCounts) {
  set(pid, Milliseconds(10), Milliseconds(0));
  set(pid + 1, Milliseconds(10), Milliseconds(0));
  begin();
  set(pid, Milliseconds(10), Milliseconds(5));
  set(pid + 1, Milliseconds(10), Milliseconds(7));
  set(pid + 2, Milliseconds(0), Milliseconds(9));
  EXPECT_EQ(until(Milliseconds(10)), Milliseconds(9)) << "one that has begun since";
}

// Linux says how long a wait was once it is over.
TEST_F(ProcessorWaitTest, AWaitThatGoesOnCounts) {
  set(pid, Milliseconds(10), Milliseconds(0), 'R');
  begin();
  EXPECT_EQ(until(Milliseconds(40)), Milliseconds(40));
  set(pid, Milliseconds(11), Milliseconds(45), 'R');
  EXPECT_EQ(until(Milliseconds(46)), Milliseconds(45)) << "once";
}

TEST_F(ProcessorWaitTest, WhoSleepsOrRunsDoesNotWait) {
  set(pid, Milliseconds(10), Milliseconds(0), 'S');
  set(pid + 1, Milliseconds(10), Milliseconds(0), 'R');
  begin();
  set(pid + 1, Milliseconds(50), Milliseconds(0), 'R');
  EXPECT_EQ(until(Milliseconds(40)), Nanoseconds(0));
}

TEST_F(ProcessorWaitTest, OfAProcessThatIsGoneNothingIsKnown) {
  begin();
  EXPECT_EQ(until(Milliseconds(40)), Nanoseconds(0));
}

}  // namespace
}  // namespace firebreak::os
