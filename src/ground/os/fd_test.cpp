// SPDX-License-Identifier: Apache-2.0
#include "ground/os/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(FdTest, ClosesAtTheEnd) {
  int number = -1;
  {
    const Fd fd = create_memory_file("x", 0).value();
    number = fd.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FdTest, MovesAndReleases) {
  Fd first = create_memory_file("x", 0).value();
  const int number = first.get();
  Fd second = std::move(first);
  EXPECT_EQ(second.get(), number);
  second = create_memory_file("y", 0).value();
  EXPECT_FALSE(is_open(number) && second.get() != number);
  const int released = second.release();
  EXPECT_FALSE(second);
  EXPECT_TRUE(is_open(released));
  Fd(released).reset();
  EXPECT_FALSE(is_open(released));
}

TEST(ErrnoError, MapsToTheCodesThatTheKernelInterfacePromises) {
  EXPECT_EQ(code_of_errno(EACCES), ErrorCode::PermissionDenied);
  EXPECT_EQ(code_of_errno(EPERM), ErrorCode::PermissionDenied);
  EXPECT_EQ(code_of_errno(ESRCH), ErrorCode::NotFound);
  EXPECT_EQ(code_of_errno(EMFILE), ErrorCode::ResourceExhausted);
  EXPECT_EQ(code_of_errno(EAGAIN), ErrorCode::Unavailable);
  EXPECT_EQ(code_of_errno(EIO), ErrorCode::Internal);
  const tl::unexpected<Error> failed = fail_errno("open /x", ENOENT);
  EXPECT_EQ(failed.value().message, "open /x: No such file or directory");
  EXPECT_EQ(failed.value().hint, "");
}

TEST(ErrnoError, SaysWhatToDoWhereAFileSystemTakesNothing) {
  for (const int number : {ENOSPC, EDQUOT, EROFS})
    EXPECT_NE(fail_errno("write /x", number).value().hint, "") << number;
}

}  // namespace
}  // namespace firebreak::os
