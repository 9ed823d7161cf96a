// SPDX-License-Identifier: Apache-2.0
#include "os/self.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace firebreak::os {
namespace {

int policy_of_this_thread() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

/// What a thread of this process can have at best.
int best_policy() {
  int best = SCHED_OTHER;
  std::thread([&best] {
    sched_param parameter{};
    parameter.sched_priority = 1;
    if (::sched_setscheduler(0, SCHED_FIFO, &parameter) == 0) best = SCHED_FIFO;
  }).join();
  return best;
}

TEST(Scheduling, APromptThreadHasTheBestPolicyAndWhatItStartsIsOrdinary) {
  int ours = -1, theirs = -1;
  Status done;
  std::thread([&] {
    done = run_as_soon_as_woken();
    ours = policy_of_this_thread();
    std::thread([&] { theirs = policy_of_this_thread(); }).join();
  }).join();
  EXPECT_EQ(ours, best_policy());
  EXPECT_EQ(theirs, SCHED_OTHER);
  EXPECT_TRUE(done || done.error().code == ErrorCode::Unsupported);
}

}  // namespace
}  // namespace firebreak::os
