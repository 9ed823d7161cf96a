// SPDX-License-Identifier: Apache-2.0
#include "agent/turns/turns.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace firebreak::turns {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Turns : public ::testing::Test {
 protected:
  std::string next(const std::vector<Claim>& claims, Nanoseconds passed = Nanoseconds(0)) {
    now_ += passed;
    look_again_ = advance(**policy_named(policy_), limits_, state_, claims, now_);
    return state_.going;
  }

  const Limits limits_{milliseconds(1'000)};  // a turn has 100 ms
  const char* policy_ = "priority";
  TurnState state_;
  Monotonic now_{seconds(1'000)};
  std::optional<Nanoseconds> look_again_;
  const Claim image_{"image", Class::Live, 20, {}, {}};
  const Claim second_image_{"second image", Class::Live, 20, {}, {}};
  const Claim video_{"video", Class::Batch, 20, {}, {}};
  const Claim second_video_{"second video", Class::Batch, 20, {}, {}};
};

TEST_F(Turns, NobodyWantsAnything) {
  EXPECT_EQ(next({}), "");
  EXPECT_FALSE(look_again_);
}

TEST_F(Turns, WhoIsAloneGoesAndNobodyHasToLookAgain) {
  EXPECT_EQ(next({video_}), "video");
  EXPECT_FALSE(look_again_);
  EXPECT_EQ(next({}), "");
}

TEST_F(Turns, TheMoreUrgentGoesAtOnceAndThenTheOtherGoesOn) {
  next({video_});
  EXPECT_EQ(next({video_, image_}, milliseconds(1)), "image");
  EXPECT_TRUE(look_again_);
  EXPECT_EQ(next({video_}, milliseconds(1)), "video");
  EXPECT_FALSE(look_again_);
}

TEST_F(Turns, OfEqualsEachHasAWholeTurn) {
  next({video_});
  EXPECT_EQ(next({video_, second_video_}, milliseconds(99)), "video");
  EXPECT_EQ(look_again_, milliseconds(1));
  EXPECT_EQ(next({video_, second_video_}, milliseconds(1)), "second video");
  EXPECT_EQ(next({video_, second_video_}, milliseconds(99)), "second video");
  EXPECT_EQ(next({video_, second_video_}, milliseconds(1)), "video");
}

TEST_F(Turns, WhoHasWaitedForTheLongestTimeHasAWholeTurn) {
  next({image_, video_});
  EXPECT_EQ(next({image_, video_}, milliseconds(999)), "image");
  EXPECT_EQ(next({image_, video_}, milliseconds(1)), "video");
  EXPECT_EQ(next({image_, video_}, milliseconds(99)), "video");
  EXPECT_EQ(next({image_, video_}, milliseconds(1)), "image");
}

TEST_F(Turns, ThoseWhoHaveWaitedForTheLongestTimeGoAsTheyCame) {
  next({image_, second_video_});
  next({image_, video_, second_video_}, milliseconds(1));
  EXPECT_EQ(next({image_, video_, second_video_}, milliseconds(1'500)), "second video");
  EXPECT_EQ(next({image_, video_, second_video_}, milliseconds(99)), "second video");
  EXPECT_EQ(next({image_, video_, second_video_}, milliseconds(1)), "video");
  EXPECT_EQ(next({image_, video_, second_video_}, milliseconds(100)), "image");
}

// Whoever comes again and again is new each time, and never ends a turn that way.
TEST_F(Turns, ThoseWhoComeAndGoLeaveRoomForWhoWaits) {
  next({image_, video_});
  Nanoseconds waited{0};
  for (bool is_second = false; state_.going != "video"; is_second = !is_second) {
    next({is_second ? second_image_ : image_, video_}, milliseconds(10));
    waited += milliseconds(10);
    ASSERT_LE(waited, limits_.bound(2));
  }
}

TEST_F(Turns, WhoWantsForEverGetsItsClassesShareAndNoMore) {
  milliseconds of_image{0}, of_video{0};
  for (int i = 0; i < 11'000; ++i) {
    next({image_, video_}, milliseconds(1));
    ++(state_.going == "image" ? of_image : of_video);
  }
  EXPECT_GE(of_video, milliseconds(900));
  EXPECT_LE(of_video, milliseconds(1'100));
  EXPECT_EQ(of_image + of_video, milliseconds(11'000));
}

TEST_F(Turns, WhoWasHeldByAnAgentBeforeHasWaitedEnough) {
  Claim held = video_;
  held.was_held = true;
  EXPECT_EQ(next({image_, held}), "video");
  EXPECT_EQ(next({image_, held}, milliseconds(99)), "video");
  EXPECT_EQ(next({image_, held}, milliseconds(1)), "image");
}

TEST_F(Turns, TheLeastSlackGoesFirst) {
  policy_ = "deadline";
  const Claim soon{"soon", Class::Batch, 10, now_ + seconds(5), milliseconds(10)};
  const Claim much{"much", Class::Batch, 100, now_ + seconds(10), milliseconds(60)};
  const Claim some_time{"some time", Class::Live, 1, {}, milliseconds(1)};
  EXPECT_EQ(next({some_time}), "some time");
  EXPECT_EQ(next({some_time, soon}, milliseconds(1)), "soon");
  EXPECT_EQ(next({some_time, soon, much}, milliseconds(1)), "much");
}

TEST_F(Turns, ASmallDifferenceIsNoReasonToChange) {
  policy_ = "deadline";
  const Claim one{"one", Class::Batch, 1, now_ + seconds(5), milliseconds(10)};
  const Claim other{"other", Class::Batch, 1, now_ + seconds(5) - milliseconds(5), milliseconds(10)};
  next({one});
  EXPECT_EQ(next({one, other}, milliseconds(99)), "one");
  EXPECT_EQ(next({one, other}, milliseconds(1)), "other");
}

/// How many of the looks, 10 ms apart, each of these tenants goes at.
std::map<std::string, int> shares_of(const char* policy, const std::vector<Claim>& claims) {
  const Limits limits{milliseconds(1'000)};
  Round round;
  std::map<std::string, int> shares;
  for (Monotonic now{seconds(1'000)}; now < Monotonic{seconds(1'060)}; now += milliseconds(10)) {
    advance(**policy_named(policy), limits, round, claims, now);
    const auto waiting = round.waiting();
    for (const Claim& claim : claims)
      shares[std::string(claim.tenant)] += waiting.contains(claim.tenant) ? 0 : 1;
  }
  return shares;
}

Claim of(const char* user, const char* tenant, Class its_class, std::optional<Monotonic> deadline = {}) {
  Claim claim{tenant, its_class, 20, deadline, {}};
  claim.user = user;
  return claim;
}

// Whatever a tenant says of its urgency, it says of its own user's share.
TEST(Round, NobodysUrgencyTakesAnothersUsersShare) {
  const Monotonic past{seconds(1)};
  for (const char* policy : {"priority", "deadline"}) {
    const auto shares =
        shares_of(policy, {of("alice", "video", Class::Batch), of("mallory", "liar", Class::Live, past)});
    EXPECT_NEAR(shares.at("video"), 3'000, 60) << policy;
    EXPECT_NEAR(shares.at("liar"), 3'000, 60) << policy;
  }
}

TEST(Round, ManyTenantsOfOneUserTakeNoMoreThanOne) {
  const auto shares =
      shares_of("priority", {of("alice", "video", Class::Batch), of("mallory", "1", Class::Live),
                             of("mallory", "2", Class::Live), of("mallory", "3", Class::Live)});
  EXPECT_NEAR(shares.at("video"), 3'000, 60);
  for (const char* its : {"1", "2", "3"}) EXPECT_NEAR(shares.at(its), 1'000, 150) << its;
}

TEST(Round, WithinAUsersShareTheMoreUrgentGoes) {
  const auto shares =
      shares_of("priority", {of("alice", "video", Class::Batch), of("alice", "image", Class::Live),
                             of("bob", "other", Class::Batch)});
  EXPECT_NEAR(shares.at("other"), 3'000, 60);
  EXPECT_GT(shares.at("image"), shares.at("video"));
  EXPECT_GT(shares.at("video"), 0) << "it has waited for as long as anybody may";
}

}  // namespace
}  // namespace firebreak::turns
