// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD=libfirebreak-guard.so: nothing changes for who is guarded but what becomes of its strays.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class Preload : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library, and keeps addresses for itself";
#endif
  }
  /// What `firebreak run --guard` adds, without an agent.
  static Sandbox::Environment guarded() { return {{"LD_PRELOAD", FIREBREAK_GUARD_LIBRARY}}; }
  Sandbox sandbox_;
};

TEST_F(Preload, ChangesNothingOfWhatTheDriverAnswers) {
  const auto plain = sandbox_.run("guard_test_caller", {});
  const auto under_guard = sandbox_.run("guard_test_caller", {}, guarded());
  EXPECT_EQ(plain.status.exit_code, 0) << plain.output;
  EXPECT_EQ(under_guard.status.exit_code, 0) << under_guard.output;
  EXPECT_THAT(plain.output, HasSubstr("use both 0 90\n"));
  EXPECT_EQ(under_guard.output, plain.output);
}

TEST_F(Preload, ContainsWhatADriverApiProgramStrays) {
  const auto plain = sandbox_.run("firebreak-lab", {"inject", "use-after-free", "--json"});
  EXPECT_THAT(plain.output, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  const auto under_guard = sandbox_.run("firebreak-lab", {"inject", "use-after-free", "--json"}, guarded());
  EXPECT_THAT(under_guard.output, HasSubstr("CUDA_SUCCESS"));
}

TEST_F(Preload, ComesUpWithTheContextWhateverWasAskedForBefore) {
  const auto plain = sandbox_.run("guard_test_caller", {"early"});
  EXPECT_THAT(plain.output, HasSubstr("guard ranges 0"));
  const auto under_guard = sandbox_.run("guard_test_caller", {"early"}, guarded());
  EXPECT_THAT(under_guard.output, HasSubstr("guard ranges 1"));
}

TEST_F(Preload, LaysTheGuardRangesWhereTheGpuReachesNothingWhateverTheDriverRefuses) {
  const auto under_guard = sandbox_.run("guard_test_caller", {"refused"}, guarded());
  const std::vector<std::string> wanted{"without rights: 1 1", "with rights: 0 1",  "rights refused: 0 1",
                                        "end refused: 0 1",    "rights taken: 1 1", "given back: 0 0"};
  for (const std::string& line : wanted) EXPECT_THAT(under_guard.output, HasSubstr(line + "\n"));
}

TEST_F(Preload, SharesMemoryWithOtherProcessesOnlyWhereItIsToldTo) {
  const std::string shared = "what the other wrote 0 119\n";
  const auto plain = sandbox_.run("guard_test_caller", {"share"});
  EXPECT_THAT(plain.output, HasSubstr(shared));
  const auto refused = sandbox_.run("guard_test_caller", {"share"}, guarded());
  EXPECT_THAT(refused.output, HasSubstr("share 801 0\n"));
  EXPECT_THAT(refused.output,
              HasSubstr("run it with --guard-ipc --without spare, or with FIREBREAK_GUARD_IPC=1"));
  auto sharing = guarded();
  sharing.emplace_back("FIREBREAK_GUARD_IPC", "1");
  const auto allowed = sandbox_.run("guard_test_caller", {"share"}, sharing);
  EXPECT_EQ(allowed.output, plain.output);
  EXPECT_THAT(allowed.output, HasSubstr("the same function by name 1"));
}

TEST_F(Preload, GivesBackWhatAContextLeavesBehind) {
  const auto under_guard = sandbox_.run("guard_test_caller", {"leave"}, guarded());
  EXPECT_THAT(under_guard.output, HasSubstr("free what has gone 1 0\n"));
}

TEST_F(Preload, ChangesNothingOfLaunchesAndPutsNoMarkerIntoAStreamThatIsCaptured) {
  const auto plain = sandbox_.run("guard_test_launcher", {});
  EXPECT_THAT(plain.output, HasSubstr("captured 1, nodes 2\n"));
  EXPECT_THAT(plain.output, HasSubstr("launch after child 0\n"));
  const auto under_guard = sandbox_.run("guard_test_launcher", {}, guarded());
  EXPECT_EQ(under_guard.output, plain.output);
}

TEST_F(Preload, FreesWhatIsStillReadAndInCapturesAsTheDriverDoes) {
  const auto plain = sandbox_.run("guard_test_freer", {});
  EXPECT_EQ(plain.status.exit_code, 0) << plain.output;
  EXPECT_THAT(plain.output, Not(HasSubstr("the kernel read 0")));
  EXPECT_THAT(plain.output, HasSubstr("free in order 0\n"));
  EXPECT_THAT(plain.output, HasSubstr("free in capture 900\nend 901\n"));
  EXPECT_THAT(plain.output, HasSubstr("free in capture 0\nend 0\n"));
  const auto under_guard = sandbox_.run("guard_test_freer", {}, guarded());
  EXPECT_EQ(under_guard.output, plain.output);
}

TEST_F(Preload, CountsCopiesFillsAndAllElseThatIsWork) {
  const auto under_guard = sandbox_.run("guard_test_worker", {}, guarded());
  EXPECT_EQ(under_guard.status.exit_code, 0) << under_guard.output;
  std::size_t calls = 0;
  std::istringstream lines(under_guard.output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cu")) continue;
    ++calls;
    EXPECT_THAT(line, HasSubstr(": 0, counted 1"));
  }
  EXPECT_EQ(calls, 57u);
}

TEST_F(Preload, TellsInItsPageWhatWentWithAContext) {
  for (const std::string how : {"reset", "reset-old", "release-old"}) {
    const auto under_guard = sandbox_.run("guard_test_worker", {how}, guarded());
    EXPECT_EQ(under_guard.output, "alive 3\nreset 0\nalive 0\n") << how;
  }
}

TEST_F(Preload, GivesOutItsOwnFunctionsWhereItsListSaysSoAndTheDriversElsewhere) {
  const auto under_guard = sandbox_.run("guard_test_asker", {}, guarded());
  EXPECT_EQ(under_guard.output, "hooked 1\n");
}

TEST_F(Preload, TellsInItsPageOfArrays) {
  const std::string wanted =
      "init 0\ncontext 0\narray 0\none: alive 1, bytes 32768\nkeeps what it is given 1\ndeep array 0\n"
      "mipmapped array 0\nthree: alive 3, bytes 100352\ndestroy 0\ndestroy again 400\ndestroy deep 0\n"
      "mipmapped: alive 1, bytes 65536\ndestroy mipmapped 0\nnone: alive 0, bytes 0\nleft behind 0\n"
      "left: alive 1, bytes 32768\ngone 0\ngone: alive 0, bytes 0\n";
  EXPECT_EQ(sandbox_.run("guard_test_arrays", {}, guarded()).output, wanted);
}

TEST_F(Preload, TellsInItsPageWhatAGreenContextAllocatesAndThatItWentWithTheDevicesContext) {
  const std::string work =
      "resource 0\nsplit 0\ngroups 1, SMs 2\ndescription 0\ngreen context 0\ncontext 0\ncurrent 0\n"
      "stream 0\nallocate 0\nmanaged 0\nallocated: alive 2, bytes 3149824\nfill 0\nsynchronize 0\n"
      "read 0\nread 7\ndestroy 0\n";
  const auto alone = sandbox_.run("guard_test_arrays", {"green"}, guarded());
  EXPECT_EQ(alone.output, "init 0\n" + work + "destroyed: alive 0, bytes 0\n");
  const auto kept = sandbox_.run("guard_test_arrays", {"kept"}, guarded());
  EXPECT_EQ(kept.output, "init 0\nprimary 0\n" + work +
                             "destroyed: alive 2, bytes 3149824\ncurrent 0\nread 0\nfree 0\n"
                             "freed: alive 1, bytes 4096\nrelease 0\nreleased: alive 0, bytes 0\n");
}

TEST_F(Preload, GuardsAForkedChildOfAProgramThatHasNotStartedCuda) {
  const std::string wanted =
      "child: guard ranges 1, pages 1, free again 1\nparent: guard ranges 1, pages 1, free again 1\nof the "
      "parent: "
      "guard ranges 1, pages 0\n";
  const auto under_guard = sandbox_.run("guard_test_caller", {"fork"}, guarded());
  EXPECT_EQ(under_guard.output, wanted);
}

// 16 GiB: an index of 32 bits that is negative by mistake, times eight bytes. 64 GiB is the limit.
TEST_F(Preload, ReachesFarToBothSidesOfEveryAllocation) {
  for (const std::string sort : {"small", "large", "mapped", "pool", "managed", "pinned"}) {
    // What Linux places lies below the libraries and the stack, or above them: there it depends.
    const bool by_linux = sort == "managed" || sort == "pinned";
    for (const std::string side : by_linux ? std::vector{"before"} : std::vector{"before", "past"}) {
      for (const std::string distance_gib : {"16", "64"}) {
        const auto far = sandbox_.run("guard_test_reacher", {sort, side, distance_gib}, guarded());
        EXPECT_EQ(far.output, "store 0\n") << sort << " " << side << " " << distance_gib;
      }
    }
  }
  const auto plain = sandbox_.run("guard_test_reacher", {"large", "past", "16"});
  EXPECT_EQ(plain.output, "store 700\n");
}

TEST_F(Preload, ReachesNoFurtherThanItSays) {
  const auto beyond = sandbox_.run("guard_test_reacher", {"large", "past", "4096"}, guarded());
  EXPECT_EQ(beyond.output, "store 700\n");
  auto near = guarded();
  near.emplace_back("FIREBREAK_GUARD_REACH_GIB", "0");
  EXPECT_EQ(sandbox_.run("guard_test_reacher", {"large", "past", "64"}, near).output, "store 700\n");
  near.back().second = "16";
  EXPECT_EQ(sandbox_.run("guard_test_reacher", {"large", "past", "16"}, near).output, "store 0\n");
  EXPECT_EQ(sandbox_.run("guard_test_reacher", {"large", "past", "64"}, near).output, "store 700\n");
}

TEST_F(Preload, GivesWayToReservationsOfTheProgramsAndKeepsTheRest) {
  const auto plain = sandbox_.run("guard_test_reacher", {"reserve"});
  EXPECT_THAT(plain.output, HasSubstr("reserved 0, as wanted 1\n"));
  const auto under_guard = sandbox_.run("guard_test_reacher", {"reserve"}, guarded());
  EXPECT_EQ(under_guard.output, "reserved 0, as wanted 1\nstore 0\nstore 0\nstore 0\n");
}

TEST_F(Preload, LeavesALimitedAddressSpaceToTheProgram) {
  const auto limited = sandbox_.run("guard_test_reacher", {"limited"}, guarded());
  EXPECT_EQ(limited.output, "mapped 1\nstore 0\n");
}

TEST_F(Preload, LeavesProgramsAloneThatUseNoCuda) {
  const auto plain = sandbox_.run("firebreak-lab", {"inject", "--list"});
  const auto under_guard = sandbox_.run("firebreak-lab", {"inject", "--list"}, guarded());
  EXPECT_EQ(under_guard.status.exit_code, 0);
  EXPECT_EQ(under_guard.output, plain.output);
}

// PyTorch's linear algebra was not found, since dlopen() looked along our library's run path (H200).
TEST_F(Preload, LibrariesFindEachOtherAsIfNobodyStoodBetween) {
  const auto plain = sandbox_.run("guard_test_opener", {"libguard_test_beneath.so"});
  EXPECT_EQ(plain.output, "opened 1: \nnext nobody\nunknown 0: 1\n");
  const auto under_guard = sandbox_.run("guard_test_opener", {"libguard_test_beneath.so"}, guarded());
  EXPECT_EQ(under_guard.output, plain.output);
}

TEST_F(Preload, SaysOneLineAndLeavesTheProgramAloneWhereItCannotComeUp) {
  const auto plain = sandbox_.run("guard_test_caller", {});
  const auto alone = sandbox_.run("guard_test_caller", {},
                                  {{"LD_PRELOAD", FIREBREAK_WITHOUT_PAGE ":" FIREBREAK_GUARD_LIBRARY}});
  EXPECT_EQ(alone.status.exit_code, 0);
  const std::string line = "firebreak: the guard is off: create a memory file: Function not implemented\n";
  std::string output = alone.output;
  const std::size_t begin = output.find(line);
  ASSERT_NE(begin, std::string::npos) << output;
  EXPECT_EQ(output.erase(begin, line.size()), plain.output);
}

TEST_F(Preload, GoesOnWhereNobodyCanBeTold) {
  const auto plain = sandbox_.run("guard_test_caller", {"unheard"});
  const auto alone = sandbox_.run("guard_test_caller", {"unheard"},
                                  {{"LD_PRELOAD", FIREBREAK_WITHOUT_PAGE ":" FIREBREAK_GUARD_LIBRARY}});
  EXPECT_EQ(alone.status.exit_code, 0);
  EXPECT_EQ(alone.output, plain.output);
}

TEST_F(Preload, IsWhatRunWithGuardDoes) {
  const auto characterized =
      sandbox_.run("firebreak-lab", {"characterize", "--gpu", "soft", "--guard", "--repeat", "1", "--kinds",
                                     "load-next-page,use-after-unmap,copy-engine-unmap,bad-program-counter"});
  EXPECT_EQ(characterized.status.exit_code, 0) << characterized.output;
  EXPECT_THAT(characterized.output, HasSubstr("4 of 4 kinds as expected"));
}

}  // namespace
}  // namespace firebreak::tests
