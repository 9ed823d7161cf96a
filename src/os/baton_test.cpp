// SPDX-License-Identifier: Apache-2.0
#include "os/baton.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "os/memory.h"
#include "os/program.h"
#include "os/real_kernel.h"
#include "os/socket.h"

namespace firebreak::os {
namespace {

struct BatonTest : testing::Test {
  Fd file = std::move(create_memory_file("baton", 4096).value());
  Baton mine = std::move(Baton::of(file.get()).value());
};

TEST_F(BatonTest, OneAtATime) {
  Baton other = std::move(Baton::of(file.get()).value());
  ASSERT_TRUE(mine.take(Milliseconds(0)));
  EXPECT_EQ(other.take(Milliseconds(1)).error().code, ErrorCode::Timeout);
  mine.give_back();
  EXPECT_TRUE(other.take(Milliseconds(0)));
  EXPECT_EQ(mine.take(Milliseconds(0)).error().code, ErrorCode::Timeout);
  other.give_back();
}

TEST_F(BatonTest, TheDeadHoldNothing) {
  RealKernel kernel;
  SpawnRequest request;
  request.command = {"sh", "-c", "exec flock -F /proc/self/fd/3 sh -c 'echo held; exec sleep 1000'"};
  request.inherited = {{file.get(), 3}};
  auto [ours, theirs] = std::move(child_stream().value());
  request.standard_output = theirs.get();
  const pid_t pid = kernel.spawn(request).value();
  const Fd pidfd = std::move(kernel.pidfd_open(pid).value());
  ASSERT_TRUE(ours.receive(Milliseconds(10'000)));
  EXPECT_EQ(mine.take(Milliseconds(1)).error().code, ErrorCode::Timeout);
  ASSERT_TRUE(kill_child(kernel, pid, pidfd));
  EXPECT_TRUE(mine.take(Milliseconds(0)));
}

}  // namespace
}  // namespace firebreak::os
