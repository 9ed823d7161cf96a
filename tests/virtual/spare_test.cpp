// SPDX-License-Identifier: Apache-2.0
/// A program that knows nothing of Firebreak, with a spare driver instance: it leaves its domain, and does
/// not notice. All of it for real, on the software GPU.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/virtual/random_programs.h"
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

TEST_F(Spare, ComesUpInTheOtherDomain) {
  const auto program = start_with_spare();
  Page page(program->pid());
  EXPECT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(page.active_domain(), "a");
  EXPECT_EQ(page.spare_domain(), "b");
  EXPECT_EQ(program->ask("context_is_same").value, 1U);
}

TEST_F(Spare, WhoIsAskedToLeaveTakesEverythingAlong) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("fill_large 4711"), CUDA_SUCCESS);
  EXPECT_EQ(model->tell("fill_large 4711"), CUDA_SUCCESS);
  step(*program, *model, 3);
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(page.active_domain(), "b");
  expect_same(*program, *model);
  step(*program, *model, 3);
  EXPECT_EQ(program->ask("context_is_same").value, 1U);
}

/// Entries of a folder of the process's in /proc.
std::size_t count_in(pid_t pid, const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/" + folder))
    ++count;
  return count;
}

std::size_t lines_of_maps(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

/// Whether its domain lives, as in a planned move, or has had a fault.
class SpareLeft : public Spare, public testing::WithParamInterface<abi::DomainRule> {};

TEST_P(SpareLeft, NothingIsLeftOfAnInstanceAfterAMove) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  const auto move = [&](std::uint32_t moves) {
    const std::size_t left = 1 - moves % 2;
    page.set_rule(left, GetParam());
    page.ask_to_leave();
    ASSERT_EQ(page->flips.load(), moves) << page.reason();
    page.set_rule(left, abi::DomainRule::Open);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason() << " after " << moves;
    step(*program, *model);
  };
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  constexpr std::uint32_t before = 2;
  constexpr std::uint32_t in_all = 12;
  for (std::uint32_t moves = 1; moves <= before; ++moves) move(moves);
  const std::size_t descriptors = count_in(program->pid(), "fd");
  const std::size_t threads = count_in(program->pid(), "task");
  const std::size_t maps = lines_of_maps(program->pid());
  for (std::uint32_t moves = before + 1; moves <= in_all; ++moves) move(moves);
  EXPECT_EQ(count_in(program->pid(), "fd"), descriptors);
  EXPECT_EQ(count_in(program->pid(), "task"), threads);
  EXPECT_EQ(copies_in(program->pid()), 2U);
  constexpr std::size_t of_c_library = 4;  // each move, as the C library keeps stacks of threads for others
  EXPECT_LE(lines_of_maps(program->pid()), maps + (in_all - before) * of_c_library);
  program->send("exit");
  const auto ended = program->wait_for_end();
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->clean()) << "something of what has gone ran at the end";
}
INSTANTIATE_TEST_SUITE_P(EachRule, SpareLeft, testing::Values(abi::DomainRule::Open, abi::DomainRule::Held),
                         [](const auto& rule) {
                           return rule.param == abi::DomainRule::Open ? "Planned" : "AfterAFault";
                         });

/// What was left goes whole, so there is no end to it.
TEST_F(Spare, InTheCoreDumpModeAProcessMovesAsOftenAsItIsAsked) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program =
      start_again("init", {{"FIREBREAK_SPARE_DUMPS", directory() + "/dump-a:" + directory() + "/dump-b"}});
  const auto model = start_plain("model");
  Page page(program->pid());
  constexpr std::uint32_t many = 60;
  for (std::uint32_t moves = 1; moves <= many; ++moves) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason() << " after " << moves - 1;
    page.set_rule(1 - moves % 2, abi::DomainRule::Held);
    page.ask_to_leave();
    ASSERT_EQ(page->flips.load(), moves) << page.reason();
    page.set_rule(1 - moves % 2, abi::DomainRule::Open);
  }
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(copies_in(program->pid()), 2U);
  step(*program, *model);
}

/// The place of each is another one's.
TEST_F(Spare, MoreDomainsMayDieThanThereArePlacesForInstances) {
  const auto program = start_with_spare("init_without_variables");
  const auto model = start_plain("model");
  Page page(program->pid());
  constexpr std::uint32_t deaths = 20;
  for (std::uint32_t death = 1; death <= deaths; ++death) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason() << " after " << death - 1;
    end_domain(death % 2 == 1 ? "a" : "b");
    EXPECT_EQ(program->ask("digest").value, model->ask("digest").value);
    ASSERT_EQ(page->flips.load(), death) << page.reason();
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    EXPECT_EQ(model->tell("step"), CUDA_SUCCESS);
    EXPECT_EQ(program->ask("digest").value, model->ask("digest").value);
  }
  EXPECT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(copies_in(program->pid()), 2U);
}

/// Variables of code are found in whatever way it is loaded, and go along.
class SpareWithCode : public Spare, public testing::WithParamInterface<const char*> {
 protected:
  using Commands = std::initializer_list<const char*>;

  /// A program each takes an address and does that: it is aside then, and works.
  void expect_told(const char* take, Commands ways, const std::string& reason) {
    for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
    for (const char* const how : ways) {
      const auto program = start_again(GetParam());
      Page page(program->pid());
      ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
      EXPECT_EQ(program->tell(take), CUDA_SUCCESS);
      EXPECT_EQ(program->tell(how), CUDA_SUCCESS);
      EXPECT_TRUE(eventually([&] { return page.reason() == reason; })) << how << ": " << page.reason();
      EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    }
  }

  /// Each of these, with an address from before.
  void expect_refused_after_a_move(const char* take, Commands ways) {
    const auto program = start_with_spare(GetParam());
    Page page(program->pid());
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    EXPECT_EQ(program->tell(take), CUDA_SUCCESS);
    page.ask_to_leave();
    ASSERT_EQ(page->flips.load(), 1U) << page.reason();
    for (const char* const how : ways) EXPECT_EQ(program->tell(how), CUDA_ERROR_NOT_SUPPORTED) << how;
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  }
};

TEST_P(SpareWithCode, WhoIsAskedToLeaveTakesItsVariablesAlong) {
  const auto program = start_with_spare(GetParam());
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  step(*program, *model, 3);
  for (std::uint32_t moves = 1; moves <= 2; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    expect_same(*program, *model);
    step(*program, *model, 3);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
}

TEST_P(SpareWithCode, WhatIsDoneBeforeEachLaunchMakesNoWorkForTheSpare) {
  const auto program = start_with_spare(GetParam());
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("prepare_launches 1"), CUDA_SUCCESS);
  std::this_thread::sleep_for(Milliseconds(300));  // it wakes nobody again before that has been looked at
  const std::uint32_t before = page->wake.load();
  EXPECT_EQ(program->tell("prepare_launches 100"), CUDA_SUCCESS);
  EXPECT_EQ(page->wake.load(), before);
}

TEST_P(SpareWithCode, WhoseDomainDiesWithVariablesGetsTheError) {
  const auto program = start_with_spare(GetParam());
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->tell("digest"), CUDA_ERROR_MISALIGNED_ADDRESS);
  // Memory that was made just before, and has not been exported yet, is reason enough.
  EXPECT_THAT(page.reason(), testing::AnyOf("its domain died with variables of its code",
                                            "its domain died with memory that was too new for its spare"));
}

// As the CUDA runtime does for cudaMemcpyToSymbol().
TEST_P(SpareWithCode, WhoTakesTheAddressOfAConstantTakesItAlong) {
  const auto program = start_with_spare(GetParam());
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("take"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("set_factor 5"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("factor").value, 5U);
  for (std::uint32_t moves = 1; moves <= 3; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    EXPECT_EQ(program->ask("factor").value, 4U + moves);
    EXPECT_EQ(program->ask("factor_on_host").value, 4U + moves);
    EXPECT_EQ(program->tell("set_factor 77"), CUDA_SUCCESS);
    EXPECT_EQ(program->ask("factor").value, 77U);
    EXPECT_EQ(program->tell("set_factor_2d " + std::to_string(5 + moves)), CUDA_SUCCESS);
    EXPECT_EQ(program->ask("factor").value, 5U + moves);
    EXPECT_EQ(program->ask("take").value, 1U) << "it has moved for the program";
    EXPECT_EQ(program->ask("is_where_it_was").value, 1U);
    EXPECT_EQ(program->ask("steps").value, moves - 1) << "the variable beside it goes along, too";
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
}

TEST_P(SpareWithCode, WhoGivesAKernelTheAddressOfAConstantIsToldAndGoesOn) {
  expect_told("take", {"give_address", "give_address_in_a_buffer"},
              "it gives a kernel the address of a variable");
}

// Its kernel would read what is not there, and end everybody in the domain.
TEST_P(SpareWithCode, WhoGivesAKernelAnAddressOfBeforeIsRefusedThat) {
  expect_refused_after_a_move("take", {"give_address"});
}

// Each context has the variables of a library for itself. It comes when the first one's are known already.
TEST_F(Spare, WhoMakesAnotherContextForALibraryWithVariablesIsToldAndGoesOn) {
  const auto program = start_with_spare("init_library");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  page.ask_to_leave();
  ASSERT_EQ(page->flips.load(), 1U) << page.reason();
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("create_context"), CUDA_SUCCESS);
  EXPECT_TRUE(page.is(SpareState::Unprotected)) << "and stays so";
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(page.reason(), "its code has variables that are not found in the spare");
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

TEST_F(Spare, WhoseKernelsAllocateMemoryIsToldAndGoesOn) {
  const auto program = start_with_spare("init_allocating");
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(eventually([&] {
    return page.reason() == "it loads code that allocates memory in its kernels";
  })) << page.reason();
  step(*program, *model, 2);
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 0U);
}

// As cublasLt does with a table of numbers.
TEST_P(SpareWithCode, WhoTakesTheAddressOfAVariableTakesItAlong) {
  const auto program = start_with_spare(GetParam());
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  step(*program, *model, 2);
  EXPECT_EQ(program->tell("take_steps"), CUDA_SUCCESS);
  for (std::uint32_t moves = 1; moves <= 3; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    EXPECT_EQ(program->ask("steps_on_host").value, 2 * moves);
    step(*program, *model, 2);
    EXPECT_EQ(program->ask("steps_on_host").value, 2 * moves + 2);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
  EXPECT_EQ(program->tell("set_steps 77"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("steps").value, 77U);
  end_domain(page.active_domain());
  EXPECT_EQ(program->tell("digest"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page.reason(), "its domain died with variables of its code");
}

TEST_P(SpareWithCode, WhoCopiesTheAddressOfAVariableToTheGpuIsToldAndGoesOn) {
  expect_told("take_steps", {"copy_address 0", "copy_address 1", "copy_address 2"},
              "it copies the address of a variable to the GPU");
}

// A kernel that looks there would read what is not there.
TEST_P(SpareWithCode, WhoCopiesAnAddressOfBeforeToTheGpuIsRefusedThat) {
  expect_refused_after_a_move("take_steps", {"copy_address 0", "copy_address 1", "copy_address 2"});
}

INSTANTIATE_TEST_SUITE_P(Code, SpareWithCode,
                         testing::Values("init_fat_binary", "init_library", "init_library_of_two"),
                         [](const auto& each) { return std::string(each.param); });

TEST_F(Spare, WorkUnderWayEndsFirst) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("spin_on_host"), CUDA_SUCCESS);
  page.ask();
  std::this_thread::sleep_for(Milliseconds(100));  // who does not wait has moved by now
  EXPECT_EQ(page->flips.load(), 0U);
  EXPECT_EQ(program->tell("release"), CUDA_SUCCESS);
  EXPECT_TRUE(page.is_answered());
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(program->ask("has_ended").value, 1U);
}

// Its kernel waits for a copy, and the copy for the gate: it waits no longer than it says, and moves then.
TEST_F(Spare, WorkThatWaitsForACallOfTheProgramsHoldsItUpForAWhile) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("spin"), CUDA_SUCCESS);
  page.ask();
  std::this_thread::sleep_for(Milliseconds(200));  // it waits for its work by now
  EXPECT_EQ(program->tell("release_by_copy"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("wait"), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return page->flips.load() == 1; })) << page.reason();
  EXPECT_TRUE(page.is_answered());
}

// Its drivers are taken down, and nobody may be inside them then (an H100: a corrupted heap).
TEST_F(Spare, AProgramThatEndsIsNotMovedAnyMore) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  std::atomic<bool> has_ended{false};
  std::thread mover([&] {
    while (!has_ended) page.ask();
  });
  EXPECT_TRUE(eventually([&] { return page->flips.load() > 2; }));
  program->send("exit");
  EXPECT_EQ(program->take_answer().value, 1U);
  const std::uint32_t moves = page->flips.load();
  EXPECT_EQ(program->take_answer().value, 2U) << "some time later";
  EXPECT_EQ(page->flips.load(), moves);
  const auto end = program->wait_for_end();
  has_ended = true;
  mover.join();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->clean()) << end->signal;
}

// PyTorch's linear algebra ends its handles when its library is taken down: the program ended with a signal
// (H200).
TEST_F(Spare, WhatAProgramCallsWhileItEndsIsAnsweredAsEver) {
  const auto program = start_with_spare("init", {{"MALLOC_PERTURB_", "165"}});
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(program->tell("use_until_the_end"), CUDA_SUCCESS);
  program->send("exit");
  const auto last = program->take_answer();
  EXPECT_EQ(last.value, 3U);
  EXPECT_EQ(last.result, CUDA_SUCCESS);
  const auto end = program->wait_for_end();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->clean()) << end->signal;
}

// As cuFFT does. Its plans failed after a move (H200).
TEST_F(Spare, KernelsThatAreFoundInATableOfTheDriversAreItsKernels) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  for (std::uint32_t moves = 1; moves <= 4; ++moves) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves);
    if (moves == 2) {
      EXPECT_EQ(program->tell("use_table"), CUDA_SUCCESS);
    }
    step(*program, *model, 3);
  }
}

// As cuBLAS does. It ended llama.cpp's server after a move (H100).
TEST_F(Spare, StreamsAreToldApartByATableOfTheDriversAfterAMoveToo) {
  const auto program = start_with_spare();
  EXPECT_EQ(program->tell("create_context"), CUDA_SUCCESS);
  Page page(program->pid());
  for (std::uint32_t moves = 1; moves <= 4; ++moves) {
    EXPECT_EQ(program->tell("ask_of_streams"), CUDA_SUCCESS) << moves;
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves);
    EXPECT_EQ(program->tell("ask_of_streams"), CUDA_SUCCESS) << moves;
  }
}

TEST_F(Spare, AForkedChildHasNoneAndDoesNotHang) {
  const auto program = start_with_spare();
  Page page(program->pid());
  for (int i = 0; i < 20; ++i) {
    page.ask();  // so that a spare comes up all the time
    EXPECT_EQ(program->ask("fork_and_init").value, static_cast<unsigned>(CUDA_ERROR_NOT_INITIALIZED)) << i;
  }
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

TEST_F(Spare, WhatWasQueuedIsDoneOnce) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(program->tell("enqueue"), CUDA_SUCCESS);
    EXPECT_EQ(model->tell("enqueue"), CUDA_SUCCESS);
  }
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(model->tell("wait"), CUDA_SUCCESS);
  expect_same(*program, *model);
}

TEST_F(Spare, WhatWasMadeLaterIsThereToo) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(program->tell("more"), CUDA_SUCCESS);
    EXPECT_EQ(model->tell("more"), CUDA_SUCCESS);
    step(*program, *model);
    page.ask_to_leave();
    step(*program, *model);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
  EXPECT_EQ(page->flips.load(), 3U);
}

TEST_F(Spare, WhoseDomainDiesWhileNothingIsUnderWayGoesOn) {
  const auto program = start_with_spare("init_without_variables");
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
    EXPECT_EQ(model->tell("step"), CUDA_SUCCESS);
  }
  end_domain("a");
  EXPECT_EQ(program->ask("digest").value, model->ask("digest").value);
  EXPECT_EQ(page->flips.load(), 1U);
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  EXPECT_EQ(model->tell("step"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("digest").value, model->ask("digest").value);
  // The left instance is reset, its domain takes clients again, and the next spare is one of them.
  EXPECT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(page.spare_domain(), "a");
}

TEST_F(Spare, WhoseDomainDiesUnderItsWorkGetsTheErrorAndIsNotMoved) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  const auto faulter = start_faulter("a");
  EXPECT_EQ(program->tell("spin"), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page->flips.load(), 0U);
  EXPECT_EQ(page->state.load(), SpareState::Lost);
}

/// A domain that is dead does not say any more what its kernels stored in variables.
TEST_F(Spare, WhoseDomainDiesWithItsVariablesGetsTheError) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->tell("digest"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page->flips.load(), 0U);
  EXPECT_EQ(page.reason(), "its domain died with variables of its code");
}

// In the next instance nothing is at that address: the kernel that uses it would end all who are there.
TEST_F(Spare, CodeThatMayStoreTheAddressOfAVariableIsNotMoved) {
  for (const char* const init : {"init_storing", "init_storing_fat_binary"}) {
    const auto program = init == std::string("init_storing") ? start_with_spare(init) : start_again(init);
    Page page(program->pid());
    EXPECT_EQ(program->tell("store_address"), CUDA_SUCCESS);
    page.ask_to_leave();
    EXPECT_EQ(program->tell("use_stored"), CUDA_SUCCESS);
    EXPECT_EQ(program->ask("steps").value, 1U);
    EXPECT_TRUE(page.is(SpareState::Unprotected));  // its code is read in the background
    EXPECT_EQ(page->flips.load(), 0U);
    EXPECT_EQ(page.reason(), "it loads code whose kernels may store the address of a variable or function");
  }
}

// A library has the variables of all its code, and a program uses a little of that.
TEST_F(Spare, VariablesOfCodeThatNothingIsUsedOfDoNotCount) {
  const auto program = start_with_spare("init_without_variables");
  const auto model = start_plain("model");
  EXPECT_EQ(program->tell("load_more"), CUDA_SUCCESS);
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  EXPECT_EQ(model->tell("step"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->ask("digest").value, model->ask("digest").value);
  EXPECT_EQ(page->flips.load(), 1U);
}

// There is room for 16 MiB of them at once, and none yet for those of code that has just come.
TEST_F(Spare, VariablesThatAreLargerThanTheRoomForThemGoAlong) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("blocks 7"), CUDA_SUCCESS);
  for (std::uint32_t moves = 1; moves <= 2; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    EXPECT_EQ(program->ask("blocks").value, 42U);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
}

TEST_F(Spare, OnceTheProgramHasAKernelOfItTheyDo) {
  const auto program = start_with_spare("init_without_variables");
  EXPECT_EQ(program->tell("load_more"), CUDA_SUCCESS);
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("use_more"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->tell("digest"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page.reason(), "its domain died with variables of its code");
}

TEST_F(Spare, WhoseDomainDiesKeepsWhatItHasWrittenToAConstant) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("take"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("set_factor 5"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("set_factor 6"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("factor").value, 6U);
  EXPECT_EQ(program->tell("fill_large 1"),
            CUDA_SUCCESS);  // and it has waited for all that it gave to the GPU
  end_domain("a");
  EXPECT_EQ(program->tell("digest"), CUDA_SUCCESS);
  EXPECT_EQ(page.active_domain(), "b") << page.reason();
  EXPECT_EQ(program->ask("factor").value, 6U);
  EXPECT_EQ(program->tell("set_factor 7"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("factor").value, 7U);
}

TEST_F(Spare, WhoseDomainDiesWithAConstantThatIsNotKnownGetsTheError) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("take"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("set_factor_2d 5"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("fill_large 1"), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->tell("digest"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page.reason(), "its domain died with variables of its code");
}

TEST_F(Spare, WhoseSpareDiesNoticesNothingAndGetsAnotherOne) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  end_domain("b");
  step(*program, *model, 2);
  EXPECT_EQ(program->tell("more"), CUDA_SUCCESS);  // the spare is to have it, too
  EXPECT_EQ(model->tell("more"), CUDA_SUCCESS);
  page.ask_to_leave();
  step(*program, *model, 2);
  EXPECT_EQ(page.active_domain(), "b");
}

TEST_F(Spare, NobodyIsMovedToASpareThatIsDead) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  end_domain("b");
  page.ask_to_leave();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  EXPECT_EQ(page.active_domain(), "b") << "by a spare that was made anew";
}

TEST_F(Spare, ItsOwnFaultIsItsOwn) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("fault"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(program->tell("step"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page->flips.load(), 0U);
  EXPECT_EQ(page->state.load(), SpareState::Lost);
  EXPECT_THAT(page.reason(), testing::HasSubstr("its domain died with"));
}

TEST_F(Spare, MemoryThatComesAndGoesKeepsItsAddresses) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  const auto before = program->ask("allocate_free 8");
  EXPECT_EQ(before.result, CUDA_SUCCESS);
  EXPECT_EQ(before.value, 1U) << "what is given back is taken again";
  page.ask_to_leave();
  const auto after = program->ask("allocate_free 8");
  EXPECT_EQ(after.result, CUDA_SUCCESS);
  EXPECT_EQ(after.value, before.value);
}

TEST_F(Spare, MemoryThatComesAndGoesInTheOrderOfAStreamComesBack) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("allocate_free_in_order 40"), CUDA_SUCCESS);
  for (std::uint32_t moves = 1; moves <= 10; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    // Until the instance that was left is empty its memory is there twice.
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    EXPECT_EQ(program->tell("allocate_free_in_order 10"), CUDA_SUCCESS);
    EXPECT_EQ(program->tell("step"), CUDA_SUCCESS) << "nobody else's event was destroyed";
  }
}

class SpareOfLargeGpu : public Spare {
 protected:
  SpareOfLargeGpu() { memory_mib_ = 8192; }
};

TEST_F(SpareOfLargeGpu, ItsPageSaysWhatTheContextsTakeThatDoNotWork) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  constexpr std::uint32_t context_mib = 519;
  constexpr std::uint32_t of_the_program_mib = 64;  // what it takes meanwhile is in it
  EXPECT_EQ(page->own_driver_mib.load(), context_mib);
  EXPECT_THAT(page->spare_mib.load(),
              testing::AllOf(testing::Ge(context_mib), testing::Le(context_mib + of_the_program_mib)));
}

class SpareOfMuchMemory : public Spare {
 protected:
  SpareOfMuchMemory() { memory_mib_ = 512; }
};

TEST_F(SpareOfMuchMemory, GoesAlongFromInstanceToInstance) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  constexpr unsigned long long blocks = 50;
  EXPECT_EQ(program->tell("allocate_many " + std::to_string(blocks)), CUDA_SUCCESS);
  for (std::uint32_t moves = 1; moves <= 3; ++moves) {
    page.ask_to_leave();
    EXPECT_EQ(page->flips.load(), moves) << page.reason();
    EXPECT_EQ(program->ask("check_many").value, blocks);
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  }
}

TEST_F(Spare, WhoDoesWhatCannotBeMovedIsToldAndGoesOn) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  (void)program->tell("export");
  ASSERT_TRUE(page.is(SpareState::Unprotected));
  EXPECT_EQ(page.reason(), "it shares memory or events with other processes");
  EXPECT_EQ(page.spare_domain(), "");
  step(*program, *model, 2);
  page.ask_to_leave();  // and is answered
  EXPECT_EQ(page->flips.load(), 0U);
}

TEST_F(Spare, WhoResetsThePrimaryContextBeginsAnewUnprotected) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  for (int resets = 0; resets < 3; ++resets) {
    const auto after = program->ask("reset_primary");
    EXPECT_EQ(after.result, CUDA_SUCCESS) << resets;
    EXPECT_EQ(after.value, 7U);
  }
  EXPECT_TRUE(eventually([&] { return page.reason() == "it resets its primary context"; })) << page.reason();
  EXPECT_EQ(page->state.load(), SpareState::Unprotected);
}

TEST_F(Spare, WithoutADomainForItsWorkTheProgramWorksAsEver) {
  start_mps("anchor");
  for (const char* const domain : {"/a", "/b"}) {
    std::filesystem::create_directory(directory() + domain);
    std::ofstream(directory() + domain + "/control") << "nobody listens";
  }
  const auto program = start_again();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Unprotected));
  step(*program, *model, 2);
}

/// No instance comes up, and its domains are in order. In the domain for anchors its fault would be
/// everybody's.
TEST_F(Spare, WithoutAnInstanceTheProgramWorksWhereItWasPlaced) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto model = start_plain("model");
  const auto program = start_again("ask_version", {{"FIREBREAK_SOFTGPU_ONE_INSTANCE", "original"}});
  Page page(program->pid());
  ASSERT_EQ(program->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(page->state.load(), SpareState::Unprotected);
  EXPECT_EQ(page.active_domain(), "a");
  end_domain("anchor");
  step(*program, *model, 2);
  end_domain("a");
  EXPECT_NE(program->tell("step"), CUDA_SUCCESS) << "it is in that domain";
}

// It would stand still there, and then get that domain's error.
TEST_F(Spare, WithoutAnInstanceTheProgramComesToNoDomainThatIsParked) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto model = start_plain("model");
  std::ofstream(directory() + "/a/" + abi::parked_file);
  const auto program = start_again("ask_version", {{"FIREBREAK_SOFTGPU_ONE_INSTANCE", "original"}});
  Page page(program->pid());
  ASSERT_EQ(program->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(page->state.load(), SpareState::Unprotected);
  EXPECT_EQ(page.active_domain(), "b");
  step(*program, *model, 2);
}

/// As one that is parked.
TEST_F(Spare, WhoComesWhileItsDomainTakesNobodyWorksInTheOther) {
  start_mps("b");
  start_mps("anchor");
  std::filesystem::create_directory(directory() + "/a");
  std::ofstream(directory() + "/a/control") << "nobody listens";
  const auto program = start_again();
  const auto model = start_plain("model");
  Page page(program->pid());
  EXPECT_EQ(page.active_domain(), "b");
  EXPECT_EQ(page->state.load(), SpareState::Unprotected);
  step(*program, *model, 2);
  std::filesystem::remove_all(directory() + "/a");
  start_mps("a");
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(page.spare_domain(), "a");
  page.ask_to_leave();
  EXPECT_EQ(page.active_domain(), "a") << page.reason();
  step(*program, *model, 2);
}

/// A link, say, that nobody can take away.
TEST_F(Spare, WhatHasTheNameOfAParkedDomainsFileAndIsNoneKeepsNobodyAway) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  std::filesystem::create_symlink("/dev/null", directory() + "/a/" + abi::parked_file);
  std::filesystem::create_directory(directory() + "/b/" + abi::parked_file);
  const auto program = start_again();
  Page page(program->pid());
  EXPECT_EQ(page.active_domain(), "a");
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(page.spare_domain(), "b");
}

TEST_F(Spare, WhoIsToldThatItsDomainIsHeldDoesNotComeToIt) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program = start_again("ask_version");
  Page page(program->pid());
  page.set_rule(0, abi::DomainRule::Held);
  ASSERT_EQ(program->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(page.active_domain(), "b");
}

/// Its own driver does no work.
TEST_F(Spare, AFaultInTheDomainForAnchorsIsNotSeenByWhoHasOneThere) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  step(*program, *model, 2);
  end_domain("anchor");
  step(*program, *model, 2);
  EXPECT_EQ(program->tell("load_more"), CUDA_SUCCESS);
  EXPECT_EQ(model->tell("load_more"), CUDA_SUCCESS);
  EXPECT_EQ(program->ask("use_more").value, model->ask("use_more").value);
  EXPECT_EQ(program->tell("retain_primary"), CUDA_SUCCESS);
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U) << page.reason();
  step(*program, *model, 2);
}

/// Neither its core dump nor its next instance would find what it needs: nobody is to rely on its spare.
class SpareChanges : public Spare, public testing::WithParamInterface<const char*> {};

TEST_P(SpareChanges, AProgramThatBecomesAnotherUserOrHasAnotherRootIsAside) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may";
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  step(*program, *model);
  EXPECT_EQ(program->tell(GetParam()), CUDA_SUCCESS);
  EXPECT_TRUE(page.is(SpareState::Unprotected));
  EXPECT_EQ(page.reason(), "it has changed its user or its root directory");
  step(*program, *model, 2);
}

INSTANTIATE_TEST_SUITE_P(WhoItIs, SpareChanges, testing::Values("become_nobody", "change_root"));

/// The process moves from domain to domain meanwhile.
class SpareRandom : public RandomPrograms<Spare> {};

TEST_P(SpareRandom, ProgramsSeeTheSameWithMoves) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  std::atomic<bool> is_done = false;
  std::thread mover([&] {
    while (!is_done.load()) {
      const bool may_move = page->state.load() == SpareState::Protected;
      if (may_move && page->answered.load() == page->asked_to_leave.load()) page.ask();
      std::this_thread::sleep_for(Milliseconds(20));
    }
  });
  expect_all_to_see_the_same(*program, *model, page);
  is_done.store(true);
  mover.join();
  EXPECT_GT(page->flips.load(), 2U) << page.reason();
}

INSTANTIATE_TEST_SUITE_P(Of1250, SpareRandom, parts_of_programs(), name_of_part);

}  // namespace
}  // namespace firebreak::test
