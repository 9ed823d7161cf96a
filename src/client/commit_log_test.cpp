// SPDX-License-Identifier: Apache-2.0
#include "client/commit_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace firebreak::client {
namespace {

struct CommitLogTest : testing::Test {
  std::unique_ptr<abi::SharedPage> page = std::make_unique<abi::SharedPage>();

  void commit(std::uint32_t epoch, std::uint64_t step, const std::string& state) {
    abi::CommitArea& area = area_of(*page, epoch);
    abi::write_commit(area.slots[step % abi::commit_slots], epoch, step, std::as_bytes(std::span(state)));
    area.next_step.store(step + 1);
  }
  static std::string text(const Recovered& found) {
    return {reinterpret_cast<const char*>(found.state.data()), found.state.size()};
  }
};

TEST_F(CommitLogTest, NothingCommittedMeansStartFromTheBeginning) {
  EXPECT_EQ(recover(*page, 1).value().next_step, 0u);
}

TEST_F(CommitLogTest, FindsThePredecessorsLastCommit) {
  for (std::uint64_t step = 0; step < 20; ++step) commit(0, step, "state " + std::to_string(step));
  const Recovered found = recover(*page, 1).value();
  EXPECT_EQ(found.next_step, 20u);
  EXPECT_EQ(text(found), "state 19");
}

TEST_F(CommitLogTest, AnAdoptedAreaHasNothingInFlight) {
  commit(0, 0, "state");
  abi::CommitArea& reused = area_of(*page, 2);
  reused.queued_step = 9;
  reused.beats_queued = 9;
  adopt(*page, 2, recover(*page, 1).value());
  EXPECT_FALSE(abi::progress_of(reused).in_flight);
  EXPECT_EQ(abi::progress_of(reused).done, 1u);
}

TEST_F(CommitLogTest, ACommitThatTheGpuHasNotPublishedIsNotFound) {
  commit(0, 0, "published");
  abi::write_commit(area_of(*page, 0).slots[1], 0, 1, {});
  EXPECT_EQ(text(recover(*page, 1).value()), "published");
}

TEST_F(CommitLogTest, ASuccessorThatFellBeforeItCommittedHidesNothing) {
  for (std::uint64_t step = 0; step < 5; ++step) commit(0, step, "first");
  for (std::uint64_t step = 5; step < 9; ++step) commit(1, step, "second");
  // Epoch 2 was promoted and ended before it wrote a word: its area still holds epoch 0's.
  const Recovered found = recover(*page, 3).value();
  EXPECT_EQ(found.next_step, 9u);
  EXPECT_EQ(text(found), "second");
}

TEST_F(CommitLogTest, WhatWasAdoptedIsFoundByTheNextSuccessor) {
  commit(0, 0, "early");
  commit(0, 1, "late");
  adopt(*page, 1, recover(*page, 1).value());
  const Recovered found = recover(*page, 2).value();
  EXPECT_EQ(found.next_step, 2u);
  EXPECT_EQ(text(found), "late");
}

TEST_F(CommitLogTest, ATornStateIsAnErrorAndNeverUsed) {
  commit(0, 3, "whole");
  area_of(*page, 0).slots[3].state[0] ^= std::byte{0xff};
  const auto found = recover(*page, 1);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::Protocol);
  EXPECT_EQ(found.error().message, "step 3 was committed, but its forward state is not whole");
}

}  // namespace
}  // namespace firebreak::client
