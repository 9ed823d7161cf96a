// SPDX-License-Identifier: Apache-2.0
#include "os/scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace firebreak::os {
namespace {

TEST(Scheduling, AThreadGoesFirstAndWhatItStartsIsOrdinary) {
  int ours = -1, theirs = -1;
  Status done;
  std::thread([&] {
    done = go_before_ordinary_threads();
    ours = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    std::thread([&] { theirs = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }).join();
  }).join();
  // Where it is not allowed the thread stays what it was.
  if (done) {
    EXPECT_EQ(ours, SCHED_FIFO);
  } else {
    EXPECT_EQ(done.error().code, ErrorCode::PermissionDenied);
    EXPECT_EQ(ours, SCHED_OTHER);
  }
  EXPECT_EQ(theirs, SCHED_OTHER);
}

}  // namespace
}  // namespace firebreak::os
