// SPDX-License-Identifier: Apache-2.0
#include "ground/os/logs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace firebreak::os {
namespace {

bool rings_within(const KernelLogBell& bell, int timeout_ms) {
  std::vector<pollfd> waits;
  for (const Fd* fd : bell.fds()) waits.push_back({fd->get(), POLLIN, 0});
  return ::poll(waits.data(), waits.size(), timeout_ms) > 0;
}

TEST(KernelLogBell, RingsWhenTheKernelLogsSomething) {
  const Result<KernelLogBell> bell = KernelLogBell::open();
  if (!bell) GTEST_SKIP() << to_string(bell.error());
  const Fd log(::open("/dev/kmsg", O_WRONLY | O_CLOEXEC));
  if (!log) GTEST_SKIP() << "/dev/kmsg cannot be written";
  constexpr std::string_view message = "<7>firebreak: a test of the log's bell\n";
  ASSERT_EQ(::write(log.get(), message.data(), message.size()), static_cast<ssize_t>(message.size()));
  // The kernel limits how much one descriptor may write, not the first line of it.
  EXPECT_TRUE(rings_within(*bell, 30'000));
}

TEST(KernelLogBell, AStandInRingsWithItsDescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd writer(ends[1]);
  const KernelLogBell bell{Fd(ends[0])};
  EXPECT_FALSE(rings_within(bell, 0));
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  EXPECT_TRUE(rings_within(bell, 0));
}

}  // namespace
}  // namespace firebreak::os
