// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <semaphore>
#include <string>

namespace firebreak::os {
namespace {

TEST(BackgroundThread, GetsNoSignalsAndHasAName) {
  std::binary_semaphore named(0);
  bool blocked = false, own_blocked = true;
  std::array<char, 16> name{};
  std::thread thread = *start_background_thread("a-name-that-is-too-long", [&] {
    named.acquire();
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = ::sigismember(&mask, SIGTERM) == 1 && ::sigismember(&mask, SIGUSR1) == 1;
    own_blocked = ::sigismember(&mask, SIGSEGV) == 1 || ::sigismember(&mask, SIGBUS) == 1;
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  });
  named.release();
  thread.join();
  EXPECT_TRUE(blocked);
  EXPECT_FALSE(own_blocked) << "its own fault would end the process without the program's handler";
  EXPECT_EQ(std::string(name.data()), "a-name-that-is-");
  sigset_t ours;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(::sigismember(&ours, SIGUSR1), 0);
}

int seen = 0;

TEST(BackgroundThread, ChildrenRunWhatTheyAreTold) {
  run_in_children([] { seen = 7; });
  const pid_t child = ::fork();
  if (child == 0) ::_exit(seen);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(seen, 0);
}

TEST(BackgroundThread, AtExitRunsWhatItIsTold) {
  const pid_t child = ::fork();
  if (child == 0) {
    run_at_exit([] { ::_exit(9); });
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

}  // namespace
}  // namespace firebreak::os
