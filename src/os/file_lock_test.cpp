// SPDX-License-Identifier: Apache-2.0
#include "os/file.h"

#include <gmock/gmock.h>

#include <optional>

#include "os/self.h"

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

TEST_F(FileLockTest, APlaceThatCannotBeWrittenIsSaid) {
  const auto lock = FileLock::take(directory.path() + "/missing/lock");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
