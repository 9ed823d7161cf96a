// SPDX-License-Identifier: Apache-2.0
#include "abi/shared_page.h"

#include <gtest/gtest.h>

#include <memory>

namespace firebreak::abi {
namespace {

std::span<const std::byte> bytes_of(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

struct SharedPageTest : testing::Test {
  std::unique_ptr<CommitSlot> slot = std::make_unique<CommitSlot>();
};

TEST(PromotionWord, KeepsEpochAndEnd) {
  const PromotionWord word = PromotionWord::from(PromotionWord{41, true}.raw());
  EXPECT_EQ(word.epoch, 41u);
  EXPECT_TRUE(word.finished);
  EXPECT_EQ(PromotionWord::from(0).epoch, 0u);
}

TEST_F(SharedPageTest, AWholeCommitIsValidForItsEpochAndStepOnly) {
  write_commit(*slot, 2, 17, bytes_of("forward state"));
  EXPECT_TRUE(commit_is_valid(*slot, 2, 17));
  EXPECT_FALSE(commit_is_valid(*slot, 3, 17));
  EXPECT_FALSE(commit_is_valid(*slot, 2, 18));
}

TEST_F(SharedPageTest, ATornCommitIsRecognised) {
  write_commit(*slot, 0, 1, bytes_of("forward state"));
  slot->state[3] ^= std::byte{1};
  EXPECT_FALSE(commit_is_valid(*slot, 0, 1));
}

TEST_F(SharedPageTest, ASizeBeyondTheSlotIsNeverRead) {
  write_commit(*slot, 0, 1, bytes_of("x"));
  slot->size_bytes = commit_state_bytes_max + 1;
  EXPECT_FALSE(commit_is_valid(*slot, 0, 1));
}

TEST(Progress, IsInFlightUntilTheGpuHasDoneAllThatWasQueued) {
  const auto area = std::make_unique<CommitArea>();
  EXPECT_FALSE(progress_of(*area).in_flight);
  area->queued_step = 3;
  area->next_step = 2;
  EXPECT_TRUE(progress_of(*area).in_flight);
  area->next_step = 3;
  EXPECT_FALSE(progress_of(*area).in_flight);
  area->beats_queued = 5;
  EXPECT_TRUE(progress_of(*area).in_flight);
  area->beats_done = 5;
  EXPECT_FALSE(progress_of(*area).in_flight);
}

TEST(Progress, BothStepsAndHeartbeatsMoveIt) {
  const auto area = std::make_unique<CommitArea>();
  const std::uint64_t before = progress_of(*area).done;
  area->next_step = 1;
  const std::uint64_t after_a_step = progress_of(*area).done;
  area->beats_done = 1;
  EXPECT_LT(before, after_a_step);
  EXPECT_LT(after_a_step, progress_of(*area).done);
}

TEST_F(SharedPageTest, ACommitWithoutStateIsValid) {
  write_commit(*slot, 0, 0, {});
  EXPECT_TRUE(commit_is_valid(*slot, 0, 0));
}

TEST_F(SharedPageTest, AnUnwrittenSlotIsNotACommit) {
  std::memset(static_cast<void*>(slot.get()), 0, sizeof *slot);
  EXPECT_FALSE(commit_is_valid(*slot, 0, 0));
}

}  // namespace
}  // namespace firebreak::abi
