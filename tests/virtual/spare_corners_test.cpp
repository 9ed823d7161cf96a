// SPDX-License-Identifier: Apache-2.0
/// What programs do in several threads, and what the GPU waits for, beside a spare: it answers as without us.
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

class SpareCorners : public Spare {
 protected:
  std::unique_ptr<Client> start_protected() {
    auto program = start_with_spare("init_without_variables");
    page_.emplace(program->pid());
    EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
    return program;
  }

  std::optional<Page> page_;
};

// What waited for the users of memory fell into the other thread's capture: errors 900 and 2.
TEST_F(SpareCorners, OneThreadCapturesWhileAnotherOneFrees) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner capture_and_free 2000"), CUDA_SUCCESS);
  EXPECT_EQ(start_plain("model")->tell("corner capture_and_free 50"), CUDA_SUCCESS);
  EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
}

// Who keeps a registration by the memory's identity would take what came later for what was there before.
TEST_F(SpareCorners, EachAllocationHasAnIdentityOfItsOwn) {
  EXPECT_EQ(start_plain("model")->ask("corner buffer_ids").value, 3U);
  EXPECT_EQ(start_protected()->ask("corner buffer_ids").value, 3U);
}

TEST_F(SpareCorners, WhatIsFreedTwiceInTheOrderOfAStreamIsAnError) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner free_twice"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(start_plain("model")->tell("corner free_twice"), CUDA_ERROR_INVALID_VALUE);
}

// A call of its own, which the GPU waited for, waited for the move: it stood still for ten seconds, three
// times, and was not moved.
TEST_F(SpareCorners, WhoseGpuWaitsForItsNextCallIsMoved) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner feed_after 500000"), CUDA_SUCCESS);
  page_->ask();
  EXPECT_TRUE(page_->is_answered() || page_->is_answered() || page_->is_answered());
  EXPECT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

TEST_F(SpareCorners, NoFunctionOfContextsAnswersBeforeInit) {
  start_mps("model");
  Client model(kernel_, environment(), FIREBREAK_PLAIN_PROGRAM);
  EXPECT_EQ(model.tell("corner before_init"), CUDA_SUCCESS);
  const auto program = start_with_spare("corner before_init");
  EXPECT_EQ(program->tell("init_without_variables"), CUDA_SUCCESS);
}

// The copy of the driver had no memory, threw, and ended the process.
TEST_F(SpareCorners, WhoseAddressesAreLimitedRunsWithoutASpare) {
  const auto program = start_with_spare("corner init_limited");
  Page page(program->pid());
  EXPECT_TRUE(page.is(SpareState::Unprotected));
  EXPECT_THAT(page.reason(), testing::HasSubstr("addresses"));
  EXPECT_EQ(program->tell("init_without_variables"), CUDA_SUCCESS);
}

// All of it stayed, until there was no memory.
TEST_F(SpareCorners, APrimaryContextThatIsGivenBackTakesItsMemoryAlong) {
  const auto program = start_with_spare("corner init");
  EXPECT_EQ(program->tell("corner retain_release 200"), CUDA_SUCCESS);
}

TEST_F(SpareCorners, GreenContextsWork) {
  const auto program = start_protected();
  const auto answer = program->ask("corner green");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 7U);
  EXPECT_EQ(start_plain("model")->ask("corner green").result, CUDA_SUCCESS);
  page_->ask_to_leave();
  EXPECT_EQ((*page_)->flips.load(), 0U) << "no other instance has such a context";
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

// Its unwinder went through our frames, and ended the process.
TEST_F(SpareCorners, AThreadMayBeCancelledInACall) {
  const auto program = start_protected();
  const auto answer = program->ask("corner cancel");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 1U);
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

// We took it for the driver. It asked for the driver's cuInit in ours, and was given ours.
TEST_F(SpareCorners, ALibraryBetweenTheProgramAndItsDriverIsNotTheDriver) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program =
      start_again("init_without_variables", {{"FIREBREAK_TEST_SHIM", FIREBREAK_SHIM_LIBRARY}});
  page_.emplace(program->pid());
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  EXPECT_EQ(program->tell("corner allocate_too_much"), CUDA_ERROR_OPERATING_SYSTEM)
      << "the library was left out";
  page_->ask_to_leave();
  EXPECT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

// Such a context was made in one instance, and nobody knew of it.
TEST_F(SpareCorners, FunctionsWithoutANumberAreFollowed) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner old_names"), CUDA_SUCCESS);
  EXPECT_EQ(start_plain("model")->tell("corner old_names"), CUDA_SUCCESS);
  EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
}

TEST_F(SpareCorners, AttributesHoldAfterAMove) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner set_attributes"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("corner attributes").value, 403U);
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->ask("corner attributes").value, 403U);
}

// The anchor's context had them, which does no work.
TEST_F(SpareCorners, FlagsOfThePrimaryContextAreThoseOfTheOneThatWorks) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner set_flags"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("corner flags").value, 2U);
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->ask("corner flags").value, 2U);
}

// The driver ended the context, and ours was current still.
TEST_F(SpareCorners, WhoDetachesLastEndsTheContext) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner detach"), CUDA_SUCCESS);
  EXPECT_EQ(start_plain("model")->tell("corner detach"), CUDA_SUCCESS);
  EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
}

// Its function and its stream stand in a structure, and were those of the instance that had been left.
TEST_F(SpareCorners, LaunchesInAStructureAreToldTheInstancesOwn) {
  const auto program = start_protected();
  EXPECT_EQ(program->ask("corner launch_on_each_device").value, 41U);
  EXPECT_EQ(start_plain("model")->ask("corner launch_on_each_device").value, 41U);
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  const auto answer = program->ask("corner launch_on_each_device");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 41U);
}

// Who counts the work had its memory in the one that ended, and the other one's streams wrote there.
TEST_F(SpareCorners, AContextThatEndsTakesNothingAlongOfAnothersWork) {
  start_mps("model");
  Client model(kernel_, environment(), FIREBREAK_PLAIN_PROGRAM);
  EXPECT_EQ(model.tell("corner init"), CUDA_SUCCESS);
  EXPECT_EQ(model.tell("corner end_one_of_two"), CUDA_SUCCESS);
  EXPECT_EQ(start_with_spare("corner init")->tell("corner end_one_of_two"), CUDA_SUCCESS);
}

// The driver's stack had both, and the one below was current once the other one had been taken off.
TEST_F(SpareCorners, WhoHasPoppedAllContextsHasNone) {
  EXPECT_EQ(start_plain("model")->tell("corner pop_all"), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(start_protected()->tell("corner pop_all"), CUDA_ERROR_INVALID_CONTEXT);
}

// Memory was allocated there, and the rest came to another context.
TEST_F(SpareCorners, AContextThatHasEndedTakesNothingMore) {
  const auto program = start_protected();
  const auto answer = program->ask("corner use_ended");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 709709709U);
  EXPECT_EQ(start_plain("model")->ask("corner use_ended").value, 709709709U);
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->ask("corner use_ended").value, 709709709U);
}

TEST_F(SpareCorners, MisuseIsAnsweredAsEver) {
  const auto program = start_protected();
  const auto answer = program->ask("corner misuse");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, start_plain("model")->ask("corner misuse").value);
}

// That the program had asked for it was kept as its time.
TEST_F(SpareCorners, AnEventThatCouldNotBeRecordedHasNoTime) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner record_nowhere"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(program->tell("corner time_nowhere"), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->tell("corner time_nowhere"), CUDA_ERROR_INVALID_HANDLE);
}

// The child has the sockets of the copies that were there, and the next ones wanted their names.
TEST_F(SpareCorners, WhoseForkedChildStaysIsMovedAgainAndAgain) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("corner fork"), CUDA_SUCCESS);
  constexpr unsigned int moves = 4;
  for (unsigned int i = 1; i <= moves; ++i) {
    ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
    page_->ask_to_leave();
    ASSERT_EQ((*page_)->flips.load(), i) << page_->reason();
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  }
}

struct Unprotecting {
  const char* what;
  const char* reason;
};

class SpareCornersAside : public SpareCorners, public testing::WithParamInterface<Unprotecting> {};

TEST_P(SpareCornersAside, IsToldAndGoesOn) {
  const auto program = start_protected();
  const auto model = start_plain("model");
  const std::string what = std::string("corner ") + GetParam().what;
  const auto right = model->ask(what);
  for (int i = 0; i < 2; ++i) {
    const auto answer = program->ask(what);
    EXPECT_EQ(answer.result, right.result);
    EXPECT_EQ(answer.value, right.value);
    EXPECT_TRUE(page_->is(SpareState::Unprotected));
    EXPECT_EQ(page_->reason(), GetParam().reason);
    page_->ask_to_leave();
    EXPECT_EQ((*page_)->flips.load(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SpareCornersAside,
    testing::Values(Unprotecting{"launch_as_before", "it launches kernels as CUDA 3 does"},
                    Unprotecting{"set_synchronous", "it sets an attribute of memory"},
                    Unprotecting{"give_symbols", "it gives its code addresses of its own"}),
    [](const auto& tested) { return std::string(tested.param.what); });

// The program's handle of its primary context is the anchor's.
TEST_F(SpareCorners, CopiesBetweenContextsAreToldTheInstancesOwn) {
  const auto program = start_protected();
  const auto answer = program->ask("corner copy_between_contexts");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 23U);
  page_->ask_to_leave();
  ASSERT_EQ((*page_)->flips.load(), 1U) << page_->reason();
  EXPECT_EQ(program->ask("corner copy_between_contexts").value, 23U);
}

// The keeper was inside a copy of the driver whose static data had gone.
TEST_F(SpareCorners, AProgramMayEndWhileItsSpareIsFilled) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  constexpr int rounds = 12;
  for (int round = 0; round < rounds; ++round) {
    const auto program = start_again("init_without_variables");
    for (int step = 0; step < 4 * round; ++step) EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    program->send("exit");
    const auto ended = program->wait_for_end();
    ASSERT_TRUE(ended) << round;
    EXPECT_TRUE(ended->clean()) << round << ": code " << ended->exit_code << ", signal " << ended->signal;
  }
}

// It got one of ours with the parameters of an older version.
TEST_F(SpareCorners, AFunctionThatIsNewerThanAllThatAreKnownIsTheDriversOwn) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program = start_again("corner ask_for_newer");
  EXPECT_EQ(program->tell("init_without_variables"), CUDA_SUCCESS);
  const auto answer = program->ask("corner use_newer");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 1U);
  page_.emplace(program->pid());
  EXPECT_TRUE(page_->is(SpareState::Unprotected));
  EXPECT_THAT(page_->reason(), testing::HasSubstr("cuMemGetInfo"));
}

// It got the driver's own, which works in the domain for anchors.
TEST_F(SpareCorners, AFunctionOfAnUnknownNameIsNotThere) {
  EXPECT_EQ(start_plain("model")->ask("corner ask_for_unknown").value, 1U);
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program = start_again("corner ask_for_unknown");
  EXPECT_EQ(program->ask("corner ask_for_unknown").value, 0U);
  EXPECT_EQ(program->tell("init_without_variables"), CUDA_SUCCESS);
  page_.emplace(program->pid());
  EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  EXPECT_EQ(program->ask("corner ask_for_unknown").value, 0U);
}

TEST_F(SpareCorners, ThereIsNoNewerFunctionOnceThereIsASpare) {
  const auto program = start_protected();
  const auto answer = program->ask("corner ask_for_newer");
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 0U);
  EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
}

}  // namespace
}  // namespace firebreak::test
