// SPDX-License-Identifier: Apache-2.0
#include "os/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/real_kernel.h"

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
