// SPDX-License-Identifier: Apache-2.0
#include "program/redo/redo_decision.h"

#include <gtest/gtest.h>

#include <vector>

#include "program/redo/ring_writer.h"

namespace firebreak::redo {
namespace {

class RedoDecisionTest : public ::testing::Test {
 protected:
  RedoDecisionTest() : memory_(sizeof(abi::RedoRing) + (std::size_t{256} << 10)) {
    writer = RingWriter::make(memory_.bytes());
  }

  void launch(std::uint64_t stream = 1) { writer->launch(stream, {}, {}); }
  // Its marker is number `value` of the count 0.
  void start(std::uint64_t value, std::uint64_t stream = 1) { writer->start_region(stream, {0, 0, value}); }
  void save(std::uint64_t value) { writer->save(1, {100, 8, 0, {1, 0, value}}); }
  void complete(std::uint64_t value) { writer->completed(0).store(value); }
  RedoDecision decided() {
    const auto read = read_ring(memory_.bytes());
    EXPECT_TRUE(read);
    return decide(*read);
  }
  void expect_redo(std::size_t first, std::size_t last, const std::vector<std::size_t>& restore = {}) {
    const RedoDecision decision = decided();
    EXPECT_EQ(decision.answer, RedoAnswer::Redo) << to_string(decision.refusal);
    EXPECT_EQ(decision.first, first);
    EXPECT_EQ(decision.last, last);
    EXPECT_EQ(decision.restore, restore);
  }
  void expect_refusal(RedoRefusal refusal, std::size_t at, abi::RedoCause cause = abi::RedoCause::None) {
    const RedoDecision decision = decided();
    EXPECT_EQ(decision.answer, RedoAnswer::Refuse);
    EXPECT_EQ(decision.refusal, refusal) << to_string(decision.refusal);
    EXPECT_EQ(decision.refused_at, at);
    EXPECT_EQ(decision.cause, cause);
  }

  RingMemory memory_;
  std::optional<RingWriter> writer;
};

TEST_F(RedoDecisionTest, WithoutMarkersAllIsDoneAgain) {
  EXPECT_EQ(decided().answer, RedoAnswer::Nothing);
  launch();
  launch();
  expect_redo(0, 2);
}

TEST_F(RedoDecisionTest, TheRegionThatIsInFlightIsDoneAgainAndTheNextBegun) {
  launch();
  start(1);
  launch();
  launch();
  start(2);
  launch();
  expect_redo(0, 1);  // nothing is known to have completed
  complete(1);
  expect_redo(1, 4);
  complete(2);
  expect_redo(4, 6);
  start(3);
  complete(3);
  EXPECT_EQ(decided().answer, RedoAnswer::Nothing);
}

TEST_F(RedoDecisionTest, WhatHasNotBegunIsLeftWhereNothingIsDoneAgain) {
  start(1);
  complete(1);
  start(2);
  launch();
  expect_redo(0, 1);
}

TEST_F(RedoDecisionTest, OnlySavesThatHaveCompletedArePutBack) {
  start(1);
  complete(1);
  save(1);
  launch();
  save(2);
  launch();
  expect_redo(0, 5);
  writer->completed(1).store(1);
  expect_redo(0, 5, {1});
  writer->completed(1).store(2);
  expect_redo(0, 5, {1, 3});
  start(2);
  complete(2);  // operations of another region have not completed
  launch();
  expect_redo(5, 7);
}

TEST_F(RedoDecisionTest, WhatCannotBeDoneAgainRefusesWhileItIsInFlight) {
  start(1);
  complete(1);
  launch();
  start(2);
  writer->cannot_redo(1, abi::RedoCause::HostCallback);
  launch();
  start(3);
  launch();
  expect_redo(0, 2);  // the operation has not begun
  complete(2);
  expect_refusal(RedoRefusal::CannotRedo, 3, abi::RedoCause::HostCallback);
  complete(3);
  expect_redo(5, 7);
}

TEST_F(RedoDecisionTest, EachCauseHasItsName) {
  for (std::uint16_t cause = 1; cause <= 8; ++cause)
    EXPECT_STRNE(to_string(abi::RedoCause{cause}), to_string(abi::RedoCause{99}));
}

TEST_F(RedoDecisionTest, ARingThatDoesNotReachBackRefuses) {
  start(1);
  complete(1);
  for (int i = 0; i < 3'000; ++i) launch();
  expect_refusal(RedoRefusal::Overrun, 0);
  start(2);
  for (int i = 0; i < 10; ++i) launch();
  expect_refusal(RedoRefusal::Overrun, 0);
  complete(2);
  EXPECT_EQ(decided().answer, RedoAnswer::Redo);
}

TEST_F(RedoDecisionTest, DamageRefuses) {
  launch();
  launch();
  memory_.bytes()[sizeof(abi::RedoRing) + 40] ^= std::byte{1};
  expect_refusal(RedoRefusal::Damaged, 0);
}

TEST_F(RedoDecisionTest, StreamsHaveToMeetWhereARegionBegins) {
  launch(1);
  launch(2);
  start(1, 1);
  launch(1);
  complete(1);  // the mark says nothing of stream 2
  expect_refusal(RedoRefusal::Unordered, 2);
}

TEST_F(RedoDecisionTest, StreamsMeetByEvents) {
  launch(1);
  launch(2);
  writer->record_event(2, 50);
  writer->wait_for_event(1, 50);
  start(1, 1);
  writer->record_event(1, 51);
  writer->wait_for_event(2, 51);
  launch(2);
  launch(1);
  complete(1);
  expect_redo(4, 9);
}

TEST_F(RedoDecisionTest, WhatDoesNotWaitForTheStartMayHaveBegun) {
  launch(1);
  start(1, 1);
  launch(1);
  launch(2);
  expect_refusal(RedoRefusal::Unordered, 3);
  writer->record_event(2, 50);
  writer->wait_for_event(1, 50);
  start(2, 1);
  launch(1);
  complete(2);  // the operation has ended by now in any case
  expect_redo(6, 8);
}

TEST_F(RedoDecisionTest, AnEventFromBeforeOrdersNothingAfter) {
  launch(1);
  writer->record_event(1, 51);
  start(1, 1);
  writer->wait_for_event(2, 51);
  launch(2);
  expect_refusal(RedoRefusal::Unordered, 4);
}

TEST_F(RedoDecisionTest, MoreStreamsThanAreFollowedRefuse) {
  for (std::uint64_t stream = 0; stream < 32; ++stream) launch(stream);
  expect_redo(0, 32);
  launch(32);
  expect_refusal(RedoRefusal::ManyStreams, 32);
}

}  // namespace
}  // namespace firebreak::redo
