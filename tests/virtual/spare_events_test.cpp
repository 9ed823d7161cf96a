// SPDX-License-Identifier: Apache-2.0
/// Times between events of a program that moves: as without us.
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

class SpareEvents : public Spare {
 protected:
  /// With events 0 to 3, of which the first two measure time and were recorded one after the other.
  std::unique_ptr<Client> start(const std::string& init = "init") {
    auto program = start_with_spare(init);
    for (const char* const each : {"make 0 0", "make 1 0", "make 2 0", "make 3 2", "record 0", "wait 0"})
      EXPECT_EQ(program->tell(std::string("event ") + each), CUDA_SUCCESS) << each;
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    record(*program, 1);
    return program;
  }
  static void record(Client& program, int event) {
    EXPECT_EQ(program.tell("event record " + std::to_string(event)), CUDA_SUCCESS);
    EXPECT_EQ(program.tell("event wait " + std::to_string(event)), CUDA_SUCCESS);
  }
  static void expect_right(Client& program, const std::string& events) {
    const auto answer = program.ask("event is_right " + events);
    EXPECT_EQ(answer.result, CUDA_SUCCESS) << events;
    EXPECT_EQ(answer.value, 1U) << events;
  }
};

TEST_F(SpareEvents, ATimeOfBeforeAMoveIsTheSameAfterIt) {
  const auto program = start();
  const auto before = program->ask("event elapsed 0 1");
  ASSERT_EQ(before.result, CUDA_SUCCESS);
  Page page(program->pid());
  for (int moves = 0; moves < 3; ++moves) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    page.ask_to_leave();
    const auto after = program->ask("event elapsed 0 1");
    EXPECT_EQ(after.result, CUDA_SUCCESS);
    EXPECT_EQ(after.value, before.value);
  }
  EXPECT_EQ(page->flips.load(), 3U);
}

TEST_F(SpareEvents, ATimeMayBeginBeforeAMoveAndEndAfterIt) {
  const auto program = start();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.ask_to_leave();
  record(*program, 2);
  expect_right(*program, "0 2");
  expect_right(*program, "1 2");
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.ask_to_leave();
  expect_right(*program, "1 2");
  record(*program, 1);
  expect_right(*program, "0 1");
  expect_right(*program, "2 1");
  EXPECT_EQ(page->flips.load(), 2U);
}

/// It cannot be asked any more, so that the times of the program's calls have to do.
TEST_F(SpareEvents, TimesOfADomainThatHasDiedAreThoseOfTheCalls) {
  const auto program = start("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  // Whoever waits for an event alone may have other work under way, as far as is known here.
  EXPECT_EQ(program->tell("event drain 0"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_TRUE(eventually([&] { return program->tell("wait") == CUDA_SUCCESS && page->flips.load() == 1; }))
      << page.reason();
  expect_right(*program, "0 1");
  record(*program, 2);
  expect_right(*program, "0 2");
}

TEST_F(SpareEvents, WhatTheDriverDoesNotAnswerIsNotAnsweredAfterAMoveEither) {
  const auto program = start();
  Page page(program->pid());
  record(*program, 3);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(program->tell("event elapsed 0 2"), CUDA_ERROR_INVALID_HANDLE) << "it was never recorded";
  EXPECT_EQ(program->tell("event elapsed 0 3"), CUDA_ERROR_INVALID_HANDLE) << "it measures no time";
  EXPECT_EQ(program->tell("event make 2 0"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("event elapsed 0 2"), CUDA_ERROR_INVALID_HANDLE) << "it was never recorded";
}

}  // namespace
}  // namespace firebreak::test
