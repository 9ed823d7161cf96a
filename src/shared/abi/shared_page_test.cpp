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

TEST(HoldWord, LastsAsLongAsItWasSaidAndNoLonger) {
  constexpr std::int64_t now_ns = 5'000'000'000;
  const std::uint32_t word = HoldWord::until(now_ns, 2'000);
  EXPECT_EQ(HoldWord::left_ms(word, now_ns), 2'000);
  EXPECT_EQ(HoldWord::left_ms(word, now_ns + 1'999'000'000), 1);
  EXPECT_EQ(HoldWord::left_ms(word, now_ns + 2'000'000'000), 0);
}

// The machine has been up for 49 days, and the word's 32 bits begin anew.
TEST(HoldWord, OutlivesTheEndOfItsNumbers) {
  constexpr std::int64_t wrap_ns = (std::int64_t{1} << 32) * 1'000'000;
  const std::uint32_t word = HoldWord::until(wrap_ns - 1'000'000, 2'000);
  EXPECT_EQ(HoldWord::left_ms(word, wrap_ns - 1'000'000), 2'000);
  EXPECT_EQ(HoldWord::left_ms(word, wrap_ns + 1'000'000'000), 999);
  EXPECT_NE(HoldWord::until(wrap_ns - 1'000'000, 1), 0u);  // it is no "go on"
}

TEST(HoldWord, IsGoOnWhereItMakesNoSense) {
  constexpr std::int64_t now_ns = 100'000'000'000'000;
  EXPECT_EQ(HoldWord::left_ms(0, now_ns), 0);
  EXPECT_EQ(HoldWord::left_ms(HoldWord::until(now_ns, HoldWord::longest_ms), now_ns), HoldWord::longest_ms);
  EXPECT_EQ(HoldWord::left_ms(HoldWord::until(now_ns, HoldWord::longest_ms + 1), now_ns), 0);
  EXPECT_EQ(HoldWord::left_ms(HoldWord::until(now_ns, -1), now_ns), 0);
  EXPECT_EQ(HoldWord::left_ms(0xffff'ffff, now_ns), 0);
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
