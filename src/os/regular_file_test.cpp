// SPDX-License-Identifier: Apache-2.0
#include "os/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "os/real_kernel.h"

namespace firebreak::os {
namespace {

struct RegularFile : testing::Test {
  RealKernel kernel;
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string path = directory.path() + "/log";

  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
};

TEST_F(RegularFile, IsTheSameByAnotherName) {
  append("x");
  const FileIdentity before = regular_file_at(kernel, path).value();
  std::filesystem::rename(path, path + ".1");
  append("x");
  EXPECT_EQ(regular_file_at(kernel, path + ".1").value(), before);
  EXPECT_NE(regular_file_at(kernel, path).value(), before);
}

TEST_F(RegularFile, HasAPlaceOfItsOwn) {
  append("old");
  const Fd theirs = kernel.open(path, O_RDWR).value();
  const Fd ours = open_regular_file(kernel, "/proc/self/fd/" + std::to_string(theirs.get())).value();
  EXPECT_EQ(go_to_end(ours.get()).value(), 3u);
  std::array<std::byte, 8> text{};
  EXPECT_EQ(kernel.read(theirs, text).value(), 3u);
  append("new!");
  EXPECT_EQ(kernel.read(ours, text).value(), 4u);
  ASSERT_TRUE(go_to(ours.get(), 0));
  EXPECT_EQ(kernel.read(ours, text).value(), 7u);
  ASSERT_TRUE(go_to(ours.get(), 5));
  EXPECT_EQ(kernel.read(ours, text).value(), 2u);
}

TEST_F(RegularFile, AFifoIsLeftAlone) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto opened = open_regular_file(kernel, path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::Unsupported);
  EXPECT_FALSE(regular_file_at(kernel, path));
  // Nobody reads it: a writer that does not wait is told so.
  EXPECT_LT(::open(path.c_str(), O_WRONLY | O_NONBLOCK), 0);
}

}  // namespace
}  // namespace firebreak::os
