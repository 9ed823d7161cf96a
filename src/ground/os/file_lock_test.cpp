// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "ground/os/self.h"

namespace firebreak::os {
namespace {

using testing::HasSubstr;

struct FileLockTest : testing::Test {
  TemporaryDirectory directory = std::move(TemporaryDirectory::create().value());
  std::string path = directory.path() + "/lock";
};

TEST_F(FileLockTest, TheSecondIsRefusedWithTheHoldersPid) {
  const auto first = FileLock::take(path);
  ASSERT_TRUE(first);
  const auto second = FileLock::take(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(second.error().message, "process " + std::to_string(own_pid()) + " holds " + path);
}

TEST_F(FileLockTest, AFileThatIsLeftBehindHoldsNobodyOff) {
  auto first = std::optional(std::move(FileLock::take(path).value()));
  first.reset();
  EXPECT_TRUE(FileLock::take(path));
}

// Whoever may write into its folder could have a file of ours emptied.
TEST_F(FileLockTest, AnotherFileUnderThatNameIsRefusedAndStaysAsItIs) {
  const std::string precious = directory.path() + "/precious";
  std::ofstream(precious) << "words";
  ASSERT_EQ(::symlink(precious.c_str(), path.c_str()), 0);
  EXPECT_FALSE(FileLock::take(path));
  ASSERT_TRUE(remove_file(path));
  ASSERT_EQ(::link(precious.c_str(), path.c_str()), 0);
  const auto lock = FileLock::take(path);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::PermissionDenied);
  ASSERT_TRUE(remove_file(path));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(FileLock::take(path)) << "and it does not wait";
  std::string content;
  std::getline(std::ifstream(precious), content);
  EXPECT_EQ(content, "words");
}

TEST_F(FileLockTest, AFileOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  std::ofstream(path) << "";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  const auto lock = FileLock::take(path);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::PermissionDenied);
}

TEST_F(FileLockTest, APlaceThatCannotBeWrittenIsSaid) {
  const auto lock = FileLock::take(directory.path() + "/missing/lock");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
