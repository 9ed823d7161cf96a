// SPDX-License-Identifier: Apache-2.0
// What firebreak.h allows to several threads; the thread sanitizer is the judge.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/client/session_support.h"

namespace firebreak::testing_agent {
namespace {

TEST_F(SessionTest, AnyThreadMayAskHowFarASessionIsWhileItWorks) {
  constexpr std::uint64_t steps = 500;
  fb_session* active = join(FB_ROLE_ACTIVE);
  std::vector<std::thread> askers;
  std::atomic<int> asking = 0;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([active, &asking] {
      ++asking;
      for (std::uint64_t next = 0, before = 0; next < steps; before = next) {
        EXPECT_EQ(fb_committed(active, &next), FB_OK);
        EXPECT_GE(next, before);
        EXPECT_EQ(fb_committed(active, nullptr), FB_ERROR_INVALID_ARGUMENT);
        EXPECT_EQ(fb_session_role(active), FB_ROLE_ACTIVE);
        EXPECT_STREQ(fb_last_error(nullptr), "");
        EXPECT_STREQ(fb_status_name(FB_OK), "FB_OK");
      }
    });
  }
  while (asking < 3) std::this_thread::yield();
  for (std::uint64_t step = 0; step < steps; ++step) EXPECT_EQ(change(active, step, 0, "x"), FB_OK);
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(fb_leave(active), FB_OK);
}

TEST_F(SessionTest, ARoleMayBeAskedForWhileAnotherThreadWaits) {
  fb_session* active = join(FB_ROLE_ACTIVE);
  fb_session* standby = join(FB_ROLE_STANDBY);
  ASSERT_EQ(commit(active, 0, "state"), FB_OK);
  gpu_catches_up();
  fb_resume resume{};
  std::thread waiter([&] { EXPECT_EQ(fb_wait_promotion(standby, -1, &resume), FB_OK); });
  EXPECT_EQ(fb_session_role(standby), FB_ROLE_STANDBY);
  agent->promote();
  while (fb_session_role(standby) != FB_ROLE_ACTIVE) std::this_thread::yield();
  std::uint64_t next_step = 0;
  EXPECT_EQ(fb_committed(standby, &next_step), FB_OK);
  EXPECT_EQ(next_step, 1u);
  waiter.join();
  EXPECT_EQ(state_of(resume), "state");
  fb_leave(standby);
  fb_leave(active);
}

TEST_F(SessionTest, ThreadsMayJoinAtOnceAndEachHasItsOwnError) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      fb_session* session = nullptr;
      const fb_join_options nowhere{sizeof nowhere, "/nowhere", "t", FB_ROLE_ACTIVE};
      if (i % 2 == 0) {
        EXPECT_EQ(fb_join(&nowhere, &session), FB_ERROR_NO_AGENT);
        EXPECT_STRNE(fb_last_error(nullptr), "");
      } else {
        EXPECT_EQ(join(*agent, FB_ROLE_STANDBY, &session), FB_OK);
        EXPECT_STREQ(fb_last_error(nullptr), "");
        EXPECT_EQ(fb_leave(session), FB_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace firebreak::testing_agent
