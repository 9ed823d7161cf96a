// SPDX-License-Identifier: Apache-2.0
#include "shared/abi/shared_page.h"

#include <gtest/gtest.h>

#include <memory>

namespace firebreak::abi {
namespace {

TEST(PromotionWord, KeepsEpochAndEnd) {
  const PromotionWord word = PromotionWord::from(PromotionWord{41, true}.raw());
  EXPECT_EQ(word.epoch, 41u);
  EXPECT_TRUE(word.finished);
  EXPECT_EQ(PromotionWord::from(0).epoch, 0u);
}

TEST(Promoted, KeepsEpochAndMember) {
  const Promoted word = Promoted::from(Promoted{0xffff'fffe, 0xffff'fffd}.raw());
  EXPECT_EQ(word.epoch, 0xffff'fffeu);
  EXPECT_EQ(word.member, 0xffff'fffdu);
}

TEST(Progress, IsInFlightUntilTheGpuHasDoneAllThatWasQueued) {
  const auto area = std::make_unique<CommitArea>();
  EXPECT_FALSE(progress_of(*area).in_flight);
  area->queued_step = 3;
  area->next_step = 2;
  EXPECT_TRUE(progress_of(*area).in_flight);
  area->next_step = 3;
  EXPECT_FALSE(progress_of(*area).in_flight);
  area->heartbeats_queued = 5;
  EXPECT_TRUE(progress_of(*area).in_flight);
  area->heartbeats_done = 5;
  EXPECT_FALSE(progress_of(*area).in_flight);
}

TEST(Progress, BothStepsAndHeartbeatsMoveIt) {
  const auto area = std::make_unique<CommitArea>();
  const std::uint64_t before = progress_of(*area).done;
  area->next_step = 1;
  const std::uint64_t after_a_step = progress_of(*area).done;
  area->heartbeats_done = 1;
  EXPECT_LT(before, after_a_step);
  EXPECT_LT(after_a_step, progress_of(*area).done);
}

}  // namespace
}  // namespace firebreak::abi
