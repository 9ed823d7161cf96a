// SPDX-License-Identifier: Apache-2.0
#include "ground/os/looks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "tests/doubles/os/fuse_file.h"

namespace firebreak::os {
namespace {

std::string path_of(const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

/// A process that has one of our descriptors.
struct Holding {
  static constexpr int number = 77;
  RealKernel kernel;
  pid_t pid = 0;
  Fd pidfd;
  explicit Holding(const Fd& fd) {
    SpawnRequest request;
    request.command = {"sleep", "1000"};
    request.inherited = {{fd.get(), number}};
    pid = kernel.spawn(request).value();
    pidfd = kernel.pidfd_open(pid).value();
  }
  ~Holding() {
    (void)kernel.send_signal(pidfd, SIGKILL);
    const int readable = pidfd.get();
    (void)kernel.poll(std::span(&readable, 1), Milliseconds(10'000));
    (void)kernel.try_wait(pid);
  }
};

TEST(DescriptorKindTest, IsWhatLinuxKnows) {
  EXPECT_EQ(kind_of(create_memory_file("x", 0).value().get()), DescriptorKind::MemoryFile);
  EXPECT_EQ(kind_of(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)).get()), DescriptorKind::Device);
  EXPECT_EQ(kind_of(socket_pair().value().first.fd().get()), DescriptorKind::Socket);
  EXPECT_EQ(kind_of(Fd(::eventfd(0, EFD_CLOEXEC)).get()), DescriptorKind::Other);
  EXPECT_EQ(kind_of(-1), DescriptorKind::Other);
}

TEST(DescriptorKindTest, AFileThatIsOnlyCalledAMemoryFileIsNone) {
  const auto folder = TemporaryDirectory::create("/dev/shm").value();
  RealKernel kernel;
  const Fd file = kernel.open(folder.path() + "/memfd:x (deleted)", O_RDWR | O_CREAT).value();
  EXPECT_EQ(kind_of(file.get()), DescriptorKind::Other);
  EXPECT_FALSE(is_what_it_is_called(file.get(), "/memfd:x (deleted)"));
}

TEST(DescriptorKindTest, ADeviceIsTheOneThatIsMeant) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(is_what_it_is_called(null.get(), "/dev/null"));
  EXPECT_FALSE(is_what_it_is_called(null.get(), "/dev/zero"));
  EXPECT_FALSE(is_what_it_is_called(null.get(), "/dev/no-such-device"));
}

TEST(DescriptorKindTest, OpensAgainOnlyWhatItIsCalled) {
  RealKernel kernel;
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(open_what_it_is_called(kernel, path_of(null), "/dev/null"));
  EXPECT_EQ(open_what_it_is_called(kernel, path_of(null), "/dev/zero").error().code, ErrorCode::NotFound);
}

TEST(DescriptorKindTest, AFileSystemInUserSpaceIsNotAsked) {
  FuseFile fuse;
  if (!fuse.file()) GTEST_SKIP() << "nobody may mount here";
  RealKernel kernel;
  EXPECT_EQ(kind_of(fuse.file().get()), DescriptorKind::Other);
  EXPECT_FALSE(is_what_it_is_called(fuse.file().get(), "/memfd:x (deleted)"));
  EXPECT_FALSE(check_what_it_is_called(path_of(fuse.file()), "/dev/null"));
  EXPECT_FALSE(open_what_it_is_called(kernel, path_of(fuse.file()), "/dev/null"));
  EXPECT_TRUE(identity_of(fuse.file().get()));
  EXPECT_TRUE(regular_file_at(kernel, path_of(fuse.file())));
  EXPECT_EQ(fuse.questions(), 0);
  struct stat info {};
  ASSERT_EQ(::fstat(fuse.file().get(), &info), 0);
  EXPECT_EQ(fuse.questions(), 1) << "it would have been asked, and heard";
}

TEST(DuplicateTest, WhatIsCalledSomethingElseIsNotTaken) {
  FuseFile fuse;
  if (!fuse.file()) GTEST_SKIP() << "nobody may mount here";
  Holding holding(fuse.file());
  fuse.questions();  // questions of its exec()
  for (const char* link : {"/memfd:x (deleted)", "/dev/null", "socket:[1]"}) {
    const auto taken = holding.kernel.pidfd_getfd(holding.pidfd, Holding::number, link);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, ErrorCode::NotFound) << taken.error().message;
  }
  EXPECT_EQ(fuse.questions(), 0) << "to close a duplicate would have asked it";
}

TEST(DuplicateTest, WhatIsWhatItIsCalledIsTaken) {
  const Fd file = memory_file_with("shared").value();
  Holding holding(file);
  const auto taken = holding.kernel.pidfd_getfd(holding.pidfd, Holding::number, "/memfd:content (deleted)");
  if (!taken && taken.error().code == ErrorCode::PermissionDenied) GTEST_SKIP() << to_string(taken.error());
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_TRUE(holding.kernel.is_same_file(holding.pid, Holding::number, *taken).value());
}

TEST(ProcessBehindTest, IsTheOneThatLives) {
  Fd pidfd;
  {
    Holding holding(memory_file_with("x").value());
    EXPECT_EQ(process_behind(holding.pidfd), holding.pid);
    pidfd = duplicate(holding.pidfd.get()).value();
  }
  EXPECT_EQ(process_behind(pidfd), 0);
  EXPECT_EQ(process_behind(memory_file_with("x").value()), 0);
}

}  // namespace
}  // namespace firebreak::os
