// SPDX-License-Identifier: Apache-2.0
/// A program's graphs go along: what is captured, what is built, and what becomes of both afterwards.
#include <gmock/gmock.h>

#include <string>

#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

class SpareGraphs : public Spare {
 protected:
  /// Beside the same program without anything of ours.
  void start() {
    program_ = start_with_spare();
    model_ = start_plain("model");
    page_.emplace(program_->pid());
    ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  }
  void both(const std::string& command) {
    EXPECT_EQ(program_->tell(command), CUDA_SUCCESS) << command;
    EXPECT_EQ(model_->tell(command), CUDA_SUCCESS) << command;
  }
  void expect_same(const std::string& question) {
    const auto answer = program_->ask(question);
    EXPECT_EQ(answer.result, CUDA_SUCCESS) << question;
    EXPECT_EQ(answer.value, model_->ask(question).value) << question;
  }
  void launch(int times = 2) {
    for (int i = 0; i < times; ++i) expect_same("graph_launch");
  }
  void move(std::uint32_t moves) {
    ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
    page_->ask_to_leave();
    ASSERT_EQ((*page_)->flips.load(), moves) << page_->reason();
  }

  std::unique_ptr<Client> program_;
  std::unique_ptr<Client> model_;
  std::optional<Page> page_;
};

class SpareGraphsOfAKind : public SpareGraphs, public testing::WithParamInterface<const char*> {};

TEST_P(SpareGraphsOfAKind, GoAlongFromInstanceToInstance) {
  start();
  both(std::string("graph_make ") + GetParam());
  launch();
  move(1);
  launch();
  move(2);
  launch();
  both(std::string("graph_make ") + GetParam());  // and new ones are made there
  launch();
  move(3);
  launch();
  both("graph_destroy");
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpareGraphsOfAKind,
                         testing::Values("plain", "one_piece", "attributes", "copies", "fill", "host", "fork",
                                         "events", "built", "child", "clone", "with_params", "into",
                                         "any_type"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(SpareGraphs, AnUpdatedExecutableGoesAlongAsItIsNow) {
  start();
  both("graph_make plain");
  launch();
  both("graph_change update");
  launch();
  move(1);
  launch();
  both("graph_change update");
  launch();
  both("graph_make plain");
  both("graph_change update");
  move(2);
  launch();
}

TEST_F(SpareGraphs, AnExecutablesNodesAreSetBeforeAndAfterAMove) {
  start();
  both("graph_make kept");
  for (const char* const how : {"kernel", "copy", "fill"}) both(std::string("graph_change ") + how);
  launch();
  move(1);
  launch();
  both("graph_change kernel_again");
  launch();
  move(2);
  launch();
}

TEST_F(SpareGraphs, NodesOfEveryTypeAreSetBeforeAndAfterAMove) {
  start();
  both("graph_make any_type");
  for (const char* const how : {"host", "child", "events"}) both(std::string("graph_change ") + how);
  launch();
  move(1);
  launch();
  both("graph_change any_type");
  launch();
  move(2);
  launch();
  for (const char* const how : {"host", "child", "events"}) both(std::string("graph_change ") + how);
  launch();
  move(3);
  launch();
}

TEST_F(SpareGraphs, ANodeThatIsOffStaysOffUntilItIsOn) {
  start();
  both("graph_make any_type");
  both("graph_change off");
  launch();
  move(1);
  expect_same("graph_enabled");
  launch();
  both("graph_change on");
  expect_same("graph_enabled");
  launch();
  both("graph_change off");
  both("graph_change same_graph");  // that enables nothing
  move(2);
  expect_same("graph_enabled");
  launch();
}

TEST_F(SpareGraphs, WhatANodeThatIsOffWouldDoMayBeGone) {
  start();
  both("graph_make kept");
  both("graph_change off_and_gone");
  launch();
  move(1);
  launch();
}

TEST_F(SpareGraphs, WhichNodeIsOffInAGraphThatIsNotAlikeNobodyKnows) {
  start();
  both("graph_make kept");
  both("graph_change other_order");
  launch();
  move(1);
  launch();
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  both("graph_make kept");
  both("graph_change off");
  both("graph_change other_order");
  ASSERT_TRUE(page_->is(SpareState::Unprotected));
  EXPECT_EQ(page_->reason(), "it changes a graph in a way that is not followed");
  launch();
}

TEST_F(SpareGraphs, AnExecutablesNodesAreSetAfterItsGraphHasMovedAndIsGone) {
  start();
  both("graph_make kept");
  move(1);
  both("graph_make_again");
  both("graph_destroy_graph");
  both("graph_change kernel");
  launch();
  move(2);
  both("graph_change kernel_again");
  launch();
}

TEST_F(SpareGraphs, NodesOfAnyTypeAreAddedToAGraphThatHasMoved) {
  start();
  both("graph_make any_type");
  expect_same("graph_count");
  move(1);
  expect_same("graph_count");
  both("graph_change graph_any_type");
  expect_same("graph_count");
  both("graph_make_again");
  launch();
  move(2);
  expect_same("graph_count");
  launch();
}

TEST_F(SpareGraphs, AGraphThatIsKeptIsTheSameThere) {
  start();
  both("graph_make kept");
  expect_same("graph_count");
  move(1);
  expect_same("graph_count");
  both("graph_change graph");
  expect_same("graph_count");
  both("graph_make_again");
  launch();
  move(2);
  expect_same("graph_count");
  both("graph_make_again");
  launch();
}

TEST_F(SpareGraphs, NobodyIsMovedInTheMiddleOfACapture) {
  start();
  both("graph_begin");
  page_->ask();
  both("step");
  both("allocate_free 3");  // whoever frees memory must not wait for everything
  EXPECT_EQ((*page_)->flips.load(), 0U);
  both("graph_end");
  EXPECT_TRUE(page_->is_answered());
  EXPECT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  launch();
}

class SpareGraphsAside : public SpareGraphs,
                         public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(SpareGraphsAside, WhoseGraphCannotBeMadeAgainIsToldAndGoesOn) {
  start();
  both(std::string("graph_make ") + GetParam().first);
  ASSERT_TRUE(page_->is(SpareState::Unprotected));
  EXPECT_EQ(page_->reason(), GetParam().second);
  launch();
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpareGraphsAside,
                         testing::Values(std::pair("allocates", "it has a graph that allocates memory"),
                                         std::pair("gives_away", "it gives a graph away to another one"),
                                         std::pair("waits", "it has a graph that waits for memory")),
                         [](const auto& each) { return std::string(each.param.first); });

}  // namespace
}  // namespace firebreak::test
