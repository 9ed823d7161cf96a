// SPDX-License-Identifier: Apache-2.0
#include "ground/os/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

struct FileWatchTest : testing::Test {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  FileWatch watch = FileWatch::of(directory.path(), "log").value();

  void write(const std::string& name) const {
    std::ofstream(directory.path() + "/" + name, std::ios::app) << "x" << std::flush;
  }
  bool is_readable() const {
    pollfd wait{watch.fd().get(), POLLIN, 0};
    return ::poll(&wait, 1, 0) > 0;
  }
};

TEST_F(FileWatchTest, TellsOfTheFileAndOfNoOther) {
  EXPECT_FALSE(is_readable());
  write("other");
  EXPECT_FALSE(watch.read().written);
  write("log");
  EXPECT_TRUE(is_readable());
  const FileWatch::Changes made = watch.read();
  EXPECT_TRUE(made.written);
  EXPECT_TRUE(made.replaced);
  write("log");
  const FileWatch::Changes written = watch.read();
  EXPECT_TRUE(written.written);
  EXPECT_FALSE(written.replaced);
  EXPECT_FALSE(is_readable());
}

TEST_F(FileWatchTest, AnotherFileUnderTheNameIsAReplacement) {
  write("log");
  write("next");
  watch.read();
  std::filesystem::rename(directory.path() + "/next", directory.path() + "/log");
  EXPECT_TRUE(watch.read().replaced);
}

TEST_F(FileWatchTest, AFileKeepsItsWatchUnderAnotherName) {
  write("log");
  const std::string path = directory.path() + "/log";
  RealKernel kernel;
  FileWatch its = FileWatch::of(kernel.open(path, O_RDONLY).value()).value();
  EXPECT_FALSE(its.read().written);
  std::filesystem::rename(path, directory.path() + "/old");
  write("log");
  EXPECT_FALSE(its.read().written);
  write("old");
  const FileWatch::Changes changes = its.read();
  EXPECT_TRUE(changes.written);
  EXPECT_FALSE(changes.replaced);
}

TEST(FileWatch, WithoutTheDirectoryThereIsNone) {
  const auto watch = FileWatch::of("/nowhere/at/all", "log");
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
