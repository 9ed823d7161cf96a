// SPDX-License-Identifier: Apache-2.0
#include "ground/os/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

std::string stat_of(pid_t pid) {
  RealKernel kernel;
  return kernel.read_file(proc_folder(pid) + "/stat").value_or("");
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ProcessStat, NamesTheProgramWhateverItsNameHolds) {
  EXPECT_EQ(program_name("17 (a (b) c) S 1"), "a (b) c");
  EXPECT_EQ(program_name("17"), "");
}

TEST(ProcessStat, AForkHasTheImageOfItsParent) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_FALSE(image(stat_of(::getpid())).empty());
  EXPECT_EQ(image(stat_of(child)), image(stat_of(::getpid())));
  end(child);
}

TEST(ProcessStat, AnotherRunOfAProgramHasAnother) {
  RealKernel kernel;
  SpawnRequest request;
  request.command = {"/proc/self/exe", "--gtest_list_tests"};
  const pid_t first = kernel.spawn(request).value();
  const std::string seen = image(stat_of(first));
  EXPECT_NE(seen, image(stat_of(::getpid())));
  end(first);
}

/// Runs of one program with the same arguments, for which Linux chooses no addresses at random. Each has a
/// child of fork() that runs nothing else.
class WithoutRandomAddresses : public testing::Test {
 protected:
  WithoutRandomAddresses() {
    SpawnRequest request;
    request.command = {"setarch", "-R", "sh", "-c", "(read -r line <&3; :) & read -r line <&3"};
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    input_ = Fd(ends[0]);
    kept_open_ = Fd(ends[1]);
    request.inherited = {{input_.get(), 3}};
    for (pid_t& run : runs_) run = kernel_.spawn(request).value();
  }
  ~WithoutRandomAddresses() override {
    kept_open_.reset();
    for (const pid_t run : runs_) end(run);
  }
  /// Returns the child once it is there.
  pid_t child_of(pid_t run) {
    for (;;) {
      const auto children = children_of(kernel_, run);
      if (!children.empty()) return children[0];
    }
  }
  RealKernel kernel_;
  Fd input_;
  Fd kept_open_;
  std::array<pid_t, 2> runs_{};
};

TEST_F(WithoutRandomAddresses, AForkHasTheImageOfItsParentAndAnotherRunHasNot) {
  const std::array children{child_of(runs_[0]), child_of(runs_[1])};
  ASSERT_EQ(image(stat_of(runs_[0])), image(stat_of(runs_[1]))) << "their addresses are the same";
  EXPECT_FALSE(image_of(kernel_, runs_[0]).empty());
  EXPECT_EQ(image_of(kernel_, runs_[0]), image_of(kernel_, children[0]));
  EXPECT_EQ(image_of(kernel_, runs_[1]), image_of(kernel_, children[1]));
  EXPECT_NE(image_of(kernel_, runs_[0]), image_of(kernel_, runs_[1]));
}

TEST(ProcessStat, OneThatHasEndedHasNone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(image(stat_of(child)), "");
  end(child);
}

}  // namespace
}  // namespace firebreak::os
