// SPDX-License-Identifier: Apache-2.0
/// Guard ranges in front of the virtual driver: they lie in the address space of the instance that works, and
/// go along when that is another one.
#include <gmock/gmock.h>

#include "shared/guard_page/guard_view.h"
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

class SpareGuarded : public Spare {
 protected:
  bool is_guarded() const override { return true; }

  static os::Fd guard_page_of(pid_t pid) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
      std::error_code closed_meanwhile;
      const std::string target = std::filesystem::read_symlink(entry, closed_meanwhile).string();
      if (target.find(abi::guard_page_name) != std::string::npos)
        return os::Fd(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
    }
    return {};
  }
  void expect_contained(Client& program, std::initializer_list<const char*> strays) {
    for (const char* const stray : strays) EXPECT_EQ(program.tell(stray), CUDA_SUCCESS) << stray;
  }
};

TEST_F(SpareGuarded, StraysAreContainedBeforeAMoveAndAfterIt) {
  const auto program = start_with_spare();
  const auto model = start_plain("model");
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  expect_contained(
      *program, {"stray end", "stray far", "stray before", "stray low", "stray freed", "reserve_and_stray"});
  for (std::uint32_t moves = 1; moves <= 4; ++moves) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason() << " after " << moves - 1;
    page.ask_to_leave();
    ASSERT_EQ(page->flips.load(), moves) << page.reason();
    expect_contained(*program, {"stray again", "stray end", "stray far", "stray before", "stray low",
                                "stray freed", "stray again", "reserve_and_stray"});
    step(*program, *model);
  }
}

TEST_F(SpareGuarded, EachAllocationHasAnIdentityOfItsOwn) {
  EXPECT_EQ(start_with_spare()->ask("corner buffer_ids").value, 3U);
}

/// The instance's address space is another one than that in which its first one began.
TEST_F(SpareGuarded, StraysAreContainedAfterADomainHasDied) {
  const auto program = start_with_spare("init_without_variables");
  Page page(program->pid());
  for (std::uint32_t death = 1; death <= 3; ++death) {
    ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason() << " after " << death - 1;
    expect_contained(*program, {"stray freed"});
    end_domain(death % 2 == 1 ? "a" : "b");
    EXPECT_EQ(program->ask("digest").result, CUDA_SUCCESS);
    ASSERT_EQ(page->flips.load(), death) << page.reason();
    expect_contained(*program, {"stray again", "stray end", "stray low"});
  }
}

/// What is said on the guard's page is asked by who hears a stray.
TEST_F(SpareGuarded, ItsPageSaysWhatIsCoveredAndThatItIsOn) {
  const auto program = start_with_spare();
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  ASSERT_EQ(program->tell("stray end"), CUDA_SUCCESS);
  page.ask_to_leave();
  ASSERT_EQ(program->tell("stray end"), CUDA_SUCCESS);
  const os::Fd file = guard_page_of(program->pid());
  const auto view = guard::GuardView::of(file.get());
  ASSERT_TRUE(view);
  EXPECT_EQ(view->state(), abi::GuardState::On) << view->note();
  EXPECT_GT(view->guard_range_bytes(), std::uint64_t{8} << 30);
}

TEST_F(SpareGuarded, WithoutTheGuardAStrayIsTheProgramsEnd) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const auto program = start_again("init", {{"FIREBREAK_GUARD", "0"}});
  Page page(program->pid());
  ASSERT_TRUE(page.is(SpareState::Protected)) << page.reason();
  // What it frees may be taken at once for what a move needs, each of which is made once.
  CUresult result = CUDA_SUCCESS;
  for (int times = 0; times < 8 && result == CUDA_SUCCESS; ++times) result = program->tell("stray freed");
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace firebreak::test
