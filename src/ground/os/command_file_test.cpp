// SPDX-License-Identifier: Apache-2.0
#include "ground/os/command_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

TEST(CommandFile, TakesWhatIsWrittenWhereItIsThere) {
  RealKernel kernel;
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/file";
  EXPECT_EQ(write_command(kernel, path, "abc").error().code, ErrorCode::NotFound);
  EXPECT_FALSE(kernel.read_file(path));
  ASSERT_TRUE(kernel.open(path, O_CREAT | O_RDWR));
  ASSERT_TRUE(write_command(kernel, path, "abc"));
  EXPECT_EQ(kernel.read_file(path).value(), "abc");
}

// A file of the kernel says by the write's error that it does not take a command.
TEST(CommandFile, SaysThatItDoesNotTakeIt) {
  RealKernel kernel;
  EXPECT_EQ(write_command(kernel, "/dev/full", "abc").error().code, ErrorCode::ResourceExhausted);
}

}  // namespace
}  // namespace firebreak::os
