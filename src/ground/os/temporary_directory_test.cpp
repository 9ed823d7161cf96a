// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

TEST(TemporaryDirectoryTest, IsPrivateAndGoneAtTheEndWithAllItHolds) {
  std::string path;
  {
    const TemporaryDirectory directory = TemporaryDirectory::create().value();
    path = directory.path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_TRUE(make_directories(path + "/a/b"));
    std::ofstream(path + "/a/b/file") << "x";
    EXPECT_TRUE(std::filesystem::exists(path + "/a/b/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryDirectoryTest, LeavesRoomForASocket) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  EXPECT_TRUE(check_socket_path(directory.path() + "/a/pipe/control_privileged"));
}

TEST(TemporaryDirectoryTest, OnlyTheLastOwnerRemovesIt) {
  TemporaryDirectory first = TemporaryDirectory::create().value();
  const std::string path = first.path();
  TemporaryDirectory second = std::move(first);
  first.remove();
  EXPECT_TRUE(std::filesystem::exists(path));
  second = TemporaryDirectory::create(path).value_or(std::move(second));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryDirectoryTest, AParentThatIsNotThereIsAnError) {
  EXPECT_EQ(TemporaryDirectory::create("/no/such/place").error().code, ErrorCode::NotFound);
}

TEST(MakeDirectories, IsFineTwiceAndFailsBelowAFile) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  EXPECT_TRUE(make_directories(directory.path() + "/a/b"));
  EXPECT_TRUE(make_directories(directory.path() + "/a/b"));
  std::ofstream(directory.path() + "/file") << "x";
  EXPECT_FALSE(make_directories(directory.path() + "/file/c"));
}

TEST(ClearDirectoryTest, TakesWhatItHoldsAndLeavesWhatLinksLeadTo) {
  const TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string inside = directory.path() + "/inside";
  const std::string outside = directory.path() + "/outside";
  ASSERT_TRUE(make_directories(inside + "/a/b"));
  ASSERT_TRUE(make_directories(outside + "/c"));
  std::ofstream(inside + "/file") << "x";
  std::filesystem::create_symlink(outside, inside + "/link");
  EXPECT_TRUE(clear_directory(inside));
  EXPECT_TRUE(std::filesystem::is_empty(inside));
  EXPECT_TRUE(std::filesystem::exists(outside + "/c"));
}

TEST(ClearDirectoryTest, OneThatIsNotThereIsClear) { EXPECT_TRUE(clear_directory("/nowhere/at/all")); }

}  // namespace
}  // namespace firebreak::os
