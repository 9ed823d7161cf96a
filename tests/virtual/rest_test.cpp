// SPDX-License-Identifier: Apache-2.0
/// A program that knows nothing of Firebreak gives its GPU up and gets it again. All of it for real, on the
/// software GPU.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/virtual/random_programs.h"
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

using abi::RestLevel;
using testing::HasSubstr;

// tests/hardware/rest_criu.sh reads them there.
static_assert(offsetof(SparePage, asked_to_rest) == 1368 && offsetof(SparePage, answered_rest) == 1372 &&
              offsetof(SparePage, rest) == 1376 && offsetof(SparePage, wake) == 28);

class Rest : public Spare {
 protected:
  static void ask(Page& page, RestLevel wanted) {
    page->asked_to_rest.store(abi::next_rest_question(page->asked_to_rest.load(), wanted));
    page->wake.fetch_add(1);
    os::futex_wake(page->wake);
  }
  static bool is_answered(Page& page) {
    return eventually([&] { return page->answered_rest.load() == page->asked_to_rest.load(); });
  }
  static std::string refusal(Page& page) { return page->rest_refusal.data(); }
  /// Why it is not so; empty: it is.
  static std::string go_to(Page& page, RestLevel wanted) {
    ask(page, wanted);
    if (!is_answered(page)) return "there was no answer";
    const std::string why = refusal(page);
    return why.empty() && page->rest.load() != wanted ? "it is somewhere else" : why;
  }
  /// Descriptors and mappings of the GPU that the process has.
  static std::size_t of_gpu_in(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    std::size_t count = 0;
    const auto is_of_gpu = [](const std::string& name) {
      return name.find("memfd:nvidia") != std::string::npos ||
             name.find("softgpu-memory") != std::string::npos;
    };
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd", ignored))
      count += is_of_gpu(std::filesystem::read_symlink(entry, ignored).string()) ? 1 : 0;
    std::ifstream maps(folder + "/maps");
    for (std::string line; std::getline(maps, line);) count += is_of_gpu(line) ? 1 : 0;
    return count;
  }
};

class RestOfEachKind : public Rest, public testing::WithParamInterface<RestLevel> {};
INSTANTIATE_TEST_SUITE_P(Each, RestOfEachKind,
                         testing::Values(RestLevel::Still, RestLevel::WithoutContexts,
                                         RestLevel::WithoutMemory),
                         [](const auto& level) {
                           return level.param == RestLevel::Still             ? "Still"
                                  : level.param == RestLevel::WithoutContexts ? "WithoutContexts"
                                                                              : "WithoutMemory";
                         });

TEST_P(RestOfEachKind, WhatTheProgramHasIsThereAgain) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  EXPECT_EQ(page->deepest_rest.load(), RestLevel::WithoutMemory);
  EXPECT_EQ(program->tell("fill_large 4711"), CUDA_SUCCESS);
  EXPECT_EQ(model->tell("fill_large 4711"), CUDA_SUCCESS);
  step(*program, *model, 3);
  for (int times = 0; times < 3; ++times) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    ASSERT_EQ(go_to(page, GetParam()), "");
    ASSERT_EQ(go_to(page, RestLevel::Awake), "");
    expect_same(*program, *model);
    step(*program, *model, 3);
    EXPECT_EQ(program->ask("context_is_same").value, 1U);
  }
}

TEST_P(RestOfEachKind, TimesOfEventsOfBeforeItAreTheSameAfterIt) {
  const auto program = start_with_spare();
  for (const char* const each : {"make 0 0", "make 1 0", "record 0", "wait 0"})
    EXPECT_EQ(program->tell(std::string("event ") + each), CUDA_SUCCESS) << each;
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  for (const char* const each : {"record 1", "wait 1"})
    EXPECT_EQ(program->tell(std::string("event ") + each), CUDA_SUCCESS) << each;
  const auto before = program->ask("event elapsed 0 1");
  ASSERT_EQ(before.result, CUDA_SUCCESS);
  Page page(program->pid());
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    ASSERT_EQ(go_to(page, GetParam()), "");
    ASSERT_EQ(go_to(page, RestLevel::Awake), "");
    const auto after = program->ask("event elapsed 0 1");
    EXPECT_EQ(after.result, CUDA_SUCCESS);
    EXPECT_EQ(after.value, before.value);
  }
}

TEST_P(RestOfEachKind, ACallOfTheProgramsWaitsUntilItIsAwake) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
  ASSERT_EQ(go_to(page, GetParam()), "");
  program->send("steps");
  // Whoever is asked again answers at once, and the program has not come through meanwhile.
  ASSERT_EQ(go_to(page, GetParam()), "");
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  const auto answer = program->take_answer();
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.value, 1U);
}

TEST_F(Rest, WithoutMemoryNothingOfTheGpuIsLeft) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_GT(of_gpu_in(program->pid()), 0U);
  ASSERT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_EQ(of_gpu_in(program->pid()), 0U);
  EXPECT_EQ(copies_in(program->pid()), 0U);
  EXPECT_GT(page->rest_host_bytes.load(), 0U);
  EXPECT_EQ(page.active_domain(), "");
  EXPECT_EQ(page.spare_domain(), "");
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(page->rest_host_bytes.load(), 0U);
  EXPECT_EQ(page.active_domain(), "a");
  EXPECT_TRUE(page.is(SpareState::Protected)) << page.reason();
}

/// PyTorch opens NVML between cuInit() and its first context.
TEST_F(Rest, WhatNvmlHasOpenIsLeftAndNothingElse) {
  const auto program = start_with_spare("nvml_open");
  EXPECT_EQ(program->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("nvml_open"), CUDA_SUCCESS);
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_EQ(of_gpu_in(program->pid()), 2U);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->ask("nvml_is_open").value, 1U);
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

/// Its memory is what is left, and who imports it.
TEST_F(Rest, WithoutContextsItsMemoryStays) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::WithoutContexts), "");
  EXPECT_EQ(copies_in(program->pid()), 0U);
  EXPECT_GT(of_gpu_in(program->pid()), 0U);
  EXPECT_EQ(page->rest_host_bytes.load(), 0U);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

/// All of its domains fall, one after the other, and the one for anchors.
class RestBesideFaults : public RestOfEachKind {};
INSTANTIATE_TEST_SUITE_P(Each, RestBesideFaults,
                         testing::Values(RestLevel::WithoutContexts, RestLevel::WithoutMemory),
                         [](const auto& level) {
                           return level.param == RestLevel::WithoutContexts ? "WithoutContexts"
                                                                            : "WithoutMemory";
                         });

TEST_P(RestBesideFaults, ADomainThatDiesMeanwhileHarmsNobodyWhoRests) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  step(*program, *model, 2);
  for (const char* const domain : {"a", "b", "anchor"}) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
    ASSERT_EQ(go_to(page, GetParam()), "");
    end_domain(domain);
    ASSERT_EQ(go_to(page, RestLevel::Awake), "") << domain;
    expect_same(*program, *model);
    step(*program, *model, 2);
  }
}

TEST_P(RestBesideFaults, WhileNoDomainTakesItItRestsOn) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  step(*program, *model, 2);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, GetParam()), "");
  for (const std::size_t domain : {0, 1}) page.set_rule(domain, abi::DomainRule::Closed);
  EXPECT_EQ(go_to(page, RestLevel::Awake), "none of its domains takes it yet");
  EXPECT_EQ(page->rest.load(), GetParam());
  page.set_rule(1, abi::DomainRule::Open);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(page.active_domain(), "b");
  expect_same(*program, *model);
}

TEST_P(RestBesideFaults, WhoIsAskedToLeaveMeanwhileHasLeft) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, GetParam()), "");
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 0U);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

/// What it has registered before it came to the GPU calls the driver at the very end.
TEST_P(RestBesideFaults, AProgramThatEndsWhileItRestsEnds) {
  const auto program = start_with_spare("use_until_the_end");
  EXPECT_EQ(program->tell("init"), CUDA_SUCCESS);
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, GetParam()), "");
  program->send("exit");
  const auto ended = program->wait_for_end();
  ASSERT_TRUE(ended) << "it waits for a GPU that nobody gives it";
  EXPECT_TRUE(ended->clean());
}

TEST_P(RestBesideFaults, AChildOfForkDoesNotHang) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  step(*program, *model);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, GetParam()), "");
  EXPECT_EQ(program->ask("fork_and_init").result, CUDA_SUCCESS);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  expect_same(*program, *model);
}

/// While it is still it is in its domain.
TEST_F(Rest, WhoIsStillMovesAsEverAndStaysStill) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  step(*program, *model, 2);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::Still), "");
  page.ask_to_leave();
  EXPECT_EQ(page->flips.load(), 1U);
  program->send("steps");
  ASSERT_EQ(go_to(page, RestLevel::Still), "");
  EXPECT_EQ(page->rest.load(), RestLevel::Still);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->take_answer().value, 2U);
  expect_same(*program, *model);
}

TEST_F(Rest, FromStillItGoesDeeperButNotFromOneDepthToTheOther) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::Still), "");
  ASSERT_EQ(go_to(page, RestLevel::WithoutContexts), "");
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "it rests already, with its memory on the GPU");
  EXPECT_EQ(go_to(page, RestLevel::Still), "it rests already, with its memory on the GPU");
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

/// A question that nobody has answered yet is another one's by then: the last one counts.
TEST_F(Rest, OfTwoQuestionsAtOnceTheLastOneCounts) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ask(page, RestLevel::WithoutMemory);
  ask(page, RestLevel::Awake);
  ASSERT_TRUE(is_answered(page));
  EXPECT_EQ(page->rest.load(), RestLevel::Awake);
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

// ---- Who is refused, and goes on ----

TEST_F(Rest, WhoHasWorkThatDoesNotEndIsRefused) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("spin_on_host"), CUDA_SUCCESS);
  ask(page, RestLevel::WithoutMemory);
  EXPECT_TRUE(eventually([&] { return is_answered(page); }));
  EXPECT_EQ(refusal(page), "it has work that does not end");
  EXPECT_EQ(page->rest.load(), RestLevel::Awake);
  EXPECT_EQ(program->tell("release"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("wait"), CUDA_SUCCESS);
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_EQ(go_to(page, RestLevel::Awake), "");
}

TEST_F(Rest, WhoIsUnprotectedIsRefused) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("reset_primary"), CUDA_SUCCESS);
  EXPECT_EQ(go_to(page, RestLevel::Still), "it is unprotected: it resets its primary context");
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "it is unprotected: it resets its primary context");
  EXPECT_EQ(program->ask("reset_primary").result, CUDA_SUCCESS);
}

TEST_F(Rest, WhoHasNoSpareIsRefusedAndMayBeStill) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.set_rule(1, abi::DomainRule::Closed);
  ASSERT_TRUE(page.is(SpareState::Unprotected));
  EXPECT_THAT(go_to(page, RestLevel::WithoutContexts), HasSubstr("it is unprotected: "));
  EXPECT_EQ(page->rest.load(), RestLevel::Awake);
  EXPECT_EQ(go_to(page, RestLevel::Still), "");
  EXPECT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->tell("step"), CUDA_SUCCESS);
}

TEST_F(Rest, WhoCapturesIsRefused) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(program->tell("graph_begin"), CUDA_SUCCESS);
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "it captures a graph");
  EXPECT_EQ(program->tell("graph_end"), CUDA_SUCCESS);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_EQ(go_to(page, RestLevel::Awake), "");
}

TEST_F(Rest, WhoIsInADomainThatIsParkedIsRefused) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  page.set_rule(0, abi::DomainRule::Held);
  EXPECT_EQ(go_to(page, RestLevel::WithoutContexts), "a domain of its is parked");
  page.set_rule(0, abi::DomainRule::Open);
  EXPECT_EQ(go_to(page, RestLevel::WithoutContexts), "");
  EXPECT_EQ(go_to(page, RestLevel::Awake), "");
}

TEST_F(Rest, WithoutRoomOnTheHostItIsRefusedAndGoesOn) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  step(*program, *model);
  EXPECT_EQ(program->tell("allocate_many 20"), CUDA_SUCCESS);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  std::ifstream statm("/proc/" + std::to_string(program->pid()) + "/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  constexpr std::uint64_t enough_for_a_thread = std::uint64_t{20} << 20U;
  rlimit before{};
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, nullptr, &before), 0);
  const rlimit none{pages * os::page_size() + enough_for_a_thread, before.rlim_max};
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, &none, nullptr), 0);
  EXPECT_THAT(go_to(page, RestLevel::WithoutMemory), HasSubstr("there is no room for"));
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, &before, nullptr), 0);
  step(*program, *model);
  EXPECT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_EQ(go_to(page, RestLevel::Awake), "");
  expect_same(*program, *model);
}

/// Somebody else has taken what it gave up: it rests on, and nothing is lost.
class RestOfSmallGpu : public Rest {
 protected:
  RestOfSmallGpu() { memory_mib_ = 96; }
};

TEST_F(RestOfSmallGpu, WithoutRoomOnTheGpuItRestsOn) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  EXPECT_EQ(program->tell("allocate_many 8"), CUDA_SUCCESS);
  step(*program, *model);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  auto other = std::make_unique<Client>(kernel_, in_domain("a"), FIREBREAK_PLAIN_PROGRAM);
  EXPECT_EQ(other->tell("init"), CUDA_SUCCESS);
  while (other->tell("allocate_many 1") == CUDA_SUCCESS) {
  }
  EXPECT_NE(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(page->rest.load(), RestLevel::WithoutMemory);
  other->kill();
  EXPECT_TRUE(eventually([&] { return go_to(page, RestLevel::Awake).empty(); })) << refusal(page);
  EXPECT_EQ(program->ask("check_many").value, 8U);
  expect_same(*program, *model);
}

/// Enough for several threads that copy.
class RestOfMuchMemory : public Rest {
 protected:
  RestOfMuchMemory() { memory_mib_ = 768; }
};

TEST_F(RestOfMuchMemory, AllOfItIsThereAgain) {
  const auto program = start_with_spare();
  Page page(program->pid());
  constexpr int blocks = 80;
  EXPECT_EQ(program->tell("allocate_many " + std::to_string(blocks)), CUDA_SUCCESS);
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(go_to(page, RestLevel::WithoutMemory), "");
  EXPECT_GE(page->rest_host_bytes.load(), std::uint64_t{blocks} * 2 << 20U);
  ASSERT_EQ(go_to(page, RestLevel::Awake), "");
  EXPECT_EQ(program->ask("check_many").value, unsigned{blocks});
}

// ---- At random instants ----

/// The process rests meanwhile, again and again.
class RestRandom : public RandomPrograms<Rest> {};

TEST_P(RestRandom, ProgramsSeeTheSameWithRests) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  std::atomic<bool> is_done = false;
  std::atomic<int> rests = 0;
  std::thread operating([&] {
    std::mt19937_64 random(first_seed_);
    while (!is_done.load()) {
      (void)page.is(SpareState::Protected);  // it works meanwhile
      const auto wanted = static_cast<RestLevel>(1 + random() % 3);
      const bool is_there = go_to(page, wanted).empty();
      if (is_there && wanted != RestLevel::Still) ++rests;
      // A domain that takes nobody for a moment is asked again.
      EXPECT_TRUE(eventually([&] { return go_to(page, RestLevel::Awake).empty(); })) << refusal(page);
    }
  });
  expect_all_to_see_the_same(*program, *model, page);
  is_done.store(true);
  operating.join();
  EXPECT_GT(rests.load(), 2) << page.reason();
}

INSTANTIATE_TEST_SUITE_P(Of1250, RestRandom, parts_of_programs(), name_of_part);

}  // namespace
}  // namespace firebreak::test
