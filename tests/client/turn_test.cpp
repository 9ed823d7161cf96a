// SPDX-License-Identifier: Apache-2.0
// Turns through the C ABI: the agent's word, and what the active says.
#include <atomic>
#include <thread>

#include "program/cuda/device_buffer.h"
#include "tests/client/session_support.h"

namespace firebreak::testing_agent {
namespace {

std::int64_t now_ns() { return to_ns(SystemClock().now()); }

struct Turn : SessionTest {
  fb_session* active = join(FB_ROLE_ACTIVE);
  abi::TurnPlace& place = agent->shared().page.turn;

  ~Turn() override { fb_leave(active); }
  void hold(std::int64_t time_ms = abi::HoldWord::longest_ms) {
    place.hold = abi::HoldWord::until(now_ns(), time_ms);
  }
  /// Messages of a connection come in their order: one that is answered tells of those before it.
  int wishes_told() {
    EXPECT_EQ(fb_listen(active, 0), FB_OK);
    return agent->wishes();
  }
  void let_go() {
    place.hold = 0;
    os::futex_wake(place.hold);
  }
};

TEST_F(Turn, WithoutAWordEverybodyGoesOn) {
  EXPECT_EQ(fb_turn(active, -1), FB_OK);
  EXPECT_EQ(fb_turn(active, 0), FB_OK);
  EXPECT_EQ(place.taken, 2u);
}

TEST_F(Turn, WhoIsHeldIsToldSoAndAsksAgain) {
  hold();
  EXPECT_EQ(fb_turn(active, 0), FB_ERROR_TIMEOUT);
  EXPECT_EQ(fb_turn(active, 5), FB_ERROR_TIMEOUT);
  EXPECT_STREQ(fb_last_error(active), "it is not this tenant's turn yet");
  EXPECT_EQ(place.taken, 0u);
  let_go();
  EXPECT_EQ(fb_turn(active, 0), FB_OK);
}

TEST_F(Turn, WhoWaitsGoesOnOnceItIsLetGo) {
  hold();
  std::atomic<bool> is_let_go = false;
  bool was_let_go_before = false;
  std::thread tenant([&] {
    EXPECT_EQ(fb_turn(active, -1), FB_OK);
    was_let_go_before = is_let_go;
  });
  is_let_go = true;
  let_go();
  tenant.join();
  EXPECT_TRUE(was_let_go_before);
}

TEST_F(Turn, AHoldThatNobodyTakesBackEndsByItself) {
  hold(40);
  const std::uint32_t word = place.hold;
  EXPECT_EQ(fb_turn(active, -1), FB_OK);
  EXPECT_EQ(abi::HoldWord::left_ms(word, now_ns()), 0);
  EXPECT_EQ(place.hold, word);
}

TEST_F(Turn, AWordThatMakesNoSenseIsGoOn) {
  const std::int64_t now_ms = now_ns() / 1'000'000;
  for (const std::int64_t until_ms : {now_ms - 1, now_ms + abi::HoldWord::longest_ms + 10'000,
                                      now_ms + (std::int64_t{1} << 31), now_ms - 1'000'000}) {
    place.hold = static_cast<std::uint32_t>(until_ms);
    EXPECT_EQ(fb_turn(active, 0), FB_OK) << until_ms - now_ms;
  }
}

TEST_F(Turn, WhoIsReplacedWaitsNoLonger) {
  hold();
  agent->begin_epoch();
  EXPECT_EQ(fb_turn(active, -1), FB_ERROR_FENCED);
  EXPECT_EQ(fb_turn_wanted(active, 0, 1), FB_ERROR_FENCED);
}

TEST_F(Turn, APromotedStandbyInheritsTheWord) {
  fb_session* standby = join(FB_ROLE_STANDBY);
  EXPECT_EQ(fb_turn(standby, 0), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_turn_wanted(standby, 0, 1), FB_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(fb_turn_wanted(active, 7, 20), FB_OK);
  hold();
  agent->promote();
  fb_resume resume{};
  ASSERT_EQ(fb_wait_promotion(standby, -1, &resume), FB_OK);
  EXPECT_EQ(fb_turn(standby, 0), FB_ERROR_TIMEOUT);
  EXPECT_EQ(place.units, 20u);
  let_go();
  EXPECT_EQ(fb_turn(standby, 0), FB_OK);
  fb_leave(standby);
}

// Who has to wait has left the GPU within a step.
TEST_F(Turn, OneStepIsQueuedAheadAtMostWhereTurnsAreGiven) {
  place.heard = 1;
  const auto word = cuda::DeviceBuffer::allocate(gpu.driver(), 64);
  ASSERT_TRUE(word);
  ASSERT_TRUE(stream.write_value64(word->address(), 0));
  gpu_catches_up();
  ASSERT_TRUE(stream.wait_value64(word->address(), 1));
  ASSERT_EQ(fb_turn(active, 0), FB_OK);
  ASSERT_EQ(commit(active, 0, "runs"), FB_OK);
  ASSERT_EQ(fb_turn(active, 0), FB_OK);
  ASSERT_EQ(commit(active, 1, "is queued"), FB_OK);
  EXPECT_EQ(fb_turn(active, 0), FB_ERROR_TIMEOUT);
  place.heard = 0;
  EXPECT_EQ(fb_turn(active, 0), FB_OK);
  place.heard = 1;
  const auto other = cuda::Stream::create(gpu.driver());
  ASSERT_TRUE(other->write_value64(word->address(), 1));
  gpu_catches_up();
  EXPECT_EQ(fb_turn(active, 0), FB_OK);
}

TEST_F(Turn, WhatIsWantedStandsOnThePage) {
  ASSERT_EQ(fb_turn_wanted(active, 5'000, 20), FB_OK);
  EXPECT_EQ(place.units, 20u);
  EXPECT_EQ(place.deadline_ns, 5'000);
  ASSERT_EQ(fb_turn_wanted(active, -5, UINT64_MAX), FB_OK);
  EXPECT_EQ(place.units, UINT64_MAX);
  EXPECT_EQ(place.deadline_ns, 1);  // it has passed; 0 would be none
  ASSERT_EQ(fb_turn_wanted(active, 0, 0), FB_OK);
  EXPECT_EQ(place.units, 0u);
  EXPECT_EQ(place.deadline_ns, 0);
}

// An agent that is older than turns closes the connection of who sends it what it does not know.
TEST_F(Turn, AnAgentIsToldOnlyWhereItWantsToHear) {
  ASSERT_EQ(fb_turn_wanted(active, 0, 20), FB_OK);
  ASSERT_EQ(fb_turn_wanted(active, 0, 0), FB_OK);
  EXPECT_EQ(wishes_told(), 0);
  place.heard = 1;
  ASSERT_EQ(fb_turn_wanted(active, 0, 20), FB_OK);
  EXPECT_EQ(wishes_told(), 1);
  ASSERT_EQ(fb_turn_wanted(active, 0, 19), FB_OK);  // the page says so
  ASSERT_EQ(fb_turn_wanted(active, 9, 18), FB_OK);
  ASSERT_EQ(fb_turn_wanted(active, 9, 0), FB_OK);
  EXPECT_EQ(wishes_told(), 3);
}

TEST_F(Turn, TheClassIsThatOfTheEnvironment) {
  EXPECT_EQ(place.is_live, 0u);
  const os::EnvironmentScope scope(os::EnvironmentScope::Variables{{"FIREBREAK_CLASS", "live"}});
  fb_session* standby = join(FB_ROLE_STANDBY);
  EXPECT_EQ(place.is_live, 0u);  // the active's is what counts
  agent->promote();
  fb_resume resume{};
  ASSERT_EQ(fb_wait_promotion(standby, -1, &resume), FB_OK);
  EXPECT_EQ(place.is_live, 1u);
  fb_leave(standby);
}

}  // namespace
}  // namespace firebreak::testing_agent
