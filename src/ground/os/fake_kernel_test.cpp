// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/os/fake_kernel.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <array>
#include <csignal>

#include "ground/base/clock.h"
#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

using testing::ElementsAre;

std::string read_text(Kernel& kernel, const Fd& fd) {
  std::array<std::byte, 64> buffer{};
  const std::size_t size = kernel.read(fd, buffer).value();
  return std::string(reinterpret_cast<const char*>(buffer.data()), size);
}

bool readable(Kernel& kernel, const Fd& fd) {
  const int number = fd.get();
  return !kernel.poll(std::span(&number, 1), Milliseconds(0)).value().empty();
}

TEST(FakeKernelTest, HasTheFilesItWasGiven) {
  FakeKernel kernel;
  kernel.set_file("/proc/driver/version", "580");
  EXPECT_EQ(kernel.read_file("/proc/driver/version").value(), "580");
  EXPECT_EQ(read_text(kernel, kernel.open("/proc/driver/version", O_RDONLY).value()), "580");
  EXPECT_THAT(kernel.list_directory("/proc").value(), ElementsAre("driver"));
  EXPECT_EQ(kernel.opened("/proc/driver/version"), 1);
  EXPECT_EQ(kernel.open("/other", O_RDONLY).error().code, ErrorCode::NotFound);
  EXPECT_EQ(kernel.list_directory("/other").error().code, ErrorCode::NotFound);
}

TEST(FakeKernelTest, RefusesWhatItWasTold) {
  FakeKernel kernel;
  kernel.set_file("/secret", "x");
  kernel.refuse("/secret", Error{ErrorCode::PermissionDenied, "no", {}});
  EXPECT_EQ(kernel.open("/secret", O_RDONLY).error().code, ErrorCode::PermissionDenied);
  EXPECT_EQ(kernel.read_file("/secret").error().code, ErrorCode::PermissionDenied);
}

TEST(FakeKernelTest, AFeedGivesOneRecordARead) {
  FakeKernel kernel;
  FakeRecordFeed feed;
  kernel.set_device("/dev/kmsg", feed.device());
  const Fd fd = kernel.open("/dev/kmsg", O_RDONLY).value();
  EXPECT_FALSE(readable(kernel, fd));
  feed.push("one");
  feed.push_failure(Error{ErrorCode::Protocol, "overrun", {}});
  feed.push("two");
  EXPECT_TRUE(readable(kernel, fd));
  EXPECT_EQ(read_text(kernel, fd), "one");
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(kernel.read(fd, buffer).error().code, ErrorCode::Protocol);
  EXPECT_EQ(read_text(kernel, fd), "two");
  EXPECT_EQ(kernel.read(fd, buffer).error().code, ErrorCode::Unavailable);
  feed.end();
  EXPECT_EQ(kernel.read(fd, buffer).value(), 0u);
}

TEST(FakeKernelTest, IoctlsReachTheDeviceAlsoThroughADuplicate) {
  FakeKernel kernel;
  unsigned long seen = 0;
  FakeDevice device;
  device.ioctl = [&](const Fd&, unsigned long request, void*) -> Status {
    seen = request;
    return {};
  };
  kernel.set_device("/dev/nvidia-uvm", device);
  kernel.add_process(7);
  kernel.give_descriptor(7, 3, "/dev/nvidia-uvm", create_memory_file("x", 0).value());
  const Fd pidfd = kernel.pidfd_open(7).value();
  EXPECT_TRUE(kernel.ioctl(kernel.pidfd_getfd(pidfd, 3, "/dev/nvidia-uvm").value(), 33, nullptr));
  EXPECT_EQ(seen, 33u);
  EXPECT_FALSE(kernel.pidfd_getfd(pidfd, 4, "/dev/nvidia-uvm"));
  EXPECT_FALSE(kernel.ioctl(pidfd, 33, nullptr));
}

TEST(FakeKernelTest, WakesADevice) {
  FakeKernel kernel;
  kernel.set_device("/dev/x", {});
  const Fd fd = kernel.open("/dev/x", O_RDWR).value();
  EXPECT_FALSE(readable(kernel, fd));
  kernel.wake("/dev/x");
  EXPECT_TRUE(readable(kernel, fd));
  std::array<std::byte, 8> buffer{};
  EXPECT_TRUE(kernel.read(fd, buffer));
  EXPECT_FALSE(readable(kernel, fd));
}

TEST(FakeKernelTest, AProcessShowsItsDescriptorsUntilItExits) {
  FakeKernel kernel;
  kernel.add_process(7);
  EXPECT_TRUE(kernel.list_directory("/proc/7/fd").value().empty());
  kernel.give_descriptor(7, 3, "/dev/nvidia-uvm", create_memory_file("x", 0).value());
  EXPECT_THAT(kernel.list_directory("/proc/7/fd").value(), ElementsAre("3"));
  EXPECT_EQ(kernel.read_link("/proc/7/fd/3").value(), "/dev/nvidia-uvm");
  const Fd pidfd = kernel.pidfd_open(7).value();
  EXPECT_FALSE(readable(kernel, pidfd));
  EXPECT_FALSE(kernel.try_wait(7).value());
  kernel.exit_process(7, {3, 0});
  EXPECT_TRUE(readable(kernel, pidfd));
  EXPECT_FALSE(kernel.pidfd_getfd(pidfd, 3, "/dev/nvidia-uvm"));
  EXPECT_EQ(kernel.try_wait(7).value()->exit_code, 3);
  EXPECT_EQ(kernel.try_wait(7).error().code, ErrorCode::NotFound);
  EXPECT_EQ(kernel.pidfd_open(7).error().code, ErrorCode::NotFound);
}

TEST(FakeKernelTest, SpawnedProcessesRunUntilKilled) {
  FakeKernel kernel;
  SpawnRequest request;
  request.command = {"tenant"};
  const pid_t pid = kernel.spawn(request).value();
  const Fd pidfd = kernel.pidfd_open(pid).value();
  EXPECT_TRUE(kernel.send_signal(pidfd, SIGTERM));
  EXPECT_TRUE(kernel.send_signal(pidfd, 0));
  EXPECT_EQ(kernel.signals().size(), 1u) << "none is sent";
  EXPECT_FALSE(kernel.try_wait(pid).value());
  EXPECT_TRUE(kernel.send_signal(pidfd, SIGKILL));
  EXPECT_EQ(kernel.try_wait(pid).value()->signal, SIGKILL);
  EXPECT_EQ(kernel.send_signal(pidfd, SIGKILL).error().code, ErrorCode::NotFound);
  ASSERT_EQ(kernel.signals().size(), 2u);
  EXPECT_EQ(kernel.signals()[0].signal, SIGTERM);
  EXPECT_THAT(kernel.spawned()[0].command, ElementsAre("tenant"));
}

TEST(FakeKernelTest, SpawnFollowsItsHandler) {
  FakeKernel kernel;
  kernel.on_spawn([](const SpawnRequest&) -> Result<pid_t> { return fail(ErrorCode::NotFound, "none"); });
  EXPECT_EQ(kernel.spawn({}).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
