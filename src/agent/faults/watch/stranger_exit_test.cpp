// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/stranger_exit.h"

#include <gtest/gtest.h>

#include <csignal>

#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::watch {
namespace {

os::Fd any_fd() { return {}; }

TEST(StrangerExit, ProcfsTellsHowAZombieEnded) {
  os::FakeKernel kernel;
  kernel.set_file("/proc/7/stat", "7 (a b) Z 1 0 0 17 9\n");
  const auto killed = exit_of_stranger(kernel, any_fd(), 7);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->signal, 9);
  kernel.set_file("/proc/7/stat", "7 (a b) Z 1 0 0 17 768\n");
  const auto failed = exit_of_stranger(kernel, any_fd(), 7);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->exit_code, 3);
  EXPECT_EQ(failed->signal, 0);
}

TEST(StrangerExit, WhatIsNotToldIsNotGuessed) {
  os::FakeKernel kernel;
  EXPECT_FALSE(exit_of_stranger(kernel, any_fd(), 7));
  kernel.set_file("/proc/7/stat", "7 (a b) Z 1 0 0 17 0\n");
  EXPECT_FALSE(exit_of_stranger(kernel, any_fd(), 7));
  kernel.set_file("/proc/7/stat", "nonsense");
  EXPECT_FALSE(exit_of_stranger(kernel, any_fd(), 7));
}

TEST(StrangerExit, ARealProcessIsKnownOrNot) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  request.command = {"/bin/sh", "-c", "kill -KILL $$"};
  const pid_t pid = kernel.spawn(request).value();
  const os::Fd pidfd = kernel.pidfd_open(pid).value();
  const int number = pidfd.get();
  ASSERT_FALSE(kernel.poll(std::span(&number, 1), std::chrono::seconds(30)).value().empty());
  const auto as_zombie = exit_of_stranger(kernel, pidfd, pid);
  ASSERT_TRUE(as_zombie);
  EXPECT_EQ(as_zombie->signal, SIGKILL);
  ASSERT_TRUE(kernel.try_wait(pid).value());
  if (const auto reaped = exit_of_stranger(kernel, pidfd, pid)) {
    EXPECT_EQ(reaped->signal, SIGKILL);
  }
}

}  // namespace
}  // namespace firebreak::watch
