// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "ground/os/memory.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

struct InterprocessMutexTest : testing::Test {
  Fd file = std::move(create_memory_file("mutex", 4096).value());
  InterprocessMutex mine = std::move(InterprocessMutex::of(file.get()).value());
};

TEST_F(InterprocessMutexTest, OneAtATime) {
  InterprocessMutex other = std::move(InterprocessMutex::of(file.get()).value());
  ASSERT_TRUE(mine.lock(Milliseconds(0)));
  EXPECT_EQ(other.lock(Milliseconds(1)).error().code, ErrorCode::Timeout);
  mine.unlock();
  EXPECT_TRUE(other.lock(Milliseconds(0)));
  EXPECT_EQ(mine.lock(Milliseconds(0)).error().code, ErrorCode::Timeout);
  other.unlock();
}

TEST_F(InterprocessMutexTest, TheDeadHoldNothing) {
  RealKernel kernel;
  SpawnRequest request;
  request.command = {"sh", "-c", "exec flock -F /proc/self/fd/3 sh -c 'echo held; exec sleep 1000'"};
  request.inherited = {{file.get(), 3}};
  auto [ours, theirs] = std::move(child_stream().value());
  request.standard_output = theirs.get();
  const pid_t pid = kernel.spawn(request).value();
  const Fd pidfd = std::move(kernel.pidfd_open(pid).value());
  ASSERT_TRUE(ours.receive(Milliseconds(10'000)));
  EXPECT_EQ(mine.lock(Milliseconds(1)).error().code, ErrorCode::Timeout);
  ASSERT_TRUE(kill_child(kernel, pid, pidfd));
  EXPECT_TRUE(mine.lock(Milliseconds(0)));
}

}  // namespace
}  // namespace firebreak::os
