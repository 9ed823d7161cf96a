// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ground/os/self.h"

namespace firebreak::os {
namespace {

class RuntimeFile : public testing::Test {
 protected:
  ErrorCode refusal() const {
    const auto read = read_runtime_file(folder_, "word");
    return read ? ErrorCode::Internal : read.error().code;
  }
  TemporaryDirectory directory_ = std::move(TemporaryDirectory::create().value());
  std::string folder_ = directory_.path() + "/run/firebreak";
  std::string file_ = folder_ + "/word";
};

TEST_F(RuntimeFile, IsReadAsItWasWrittenLast) {
  EXPECT_EQ(refusal(), ErrorCode::NotFound);
  ASSERT_TRUE(replace_runtime_file(folder_, "word", "first"));
  ASSERT_TRUE(replace_runtime_file(folder_, "word", "second\n"));
  EXPECT_EQ(read_runtime_file(folder_, "word").value(), "second\n");
  const auto entries = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(RuntimeFile, IsForItsOwnerAlone) {
  ASSERT_TRUE(replace_runtime_file(folder_, "word", "mine"));
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(RuntimeFile, ProvesNothingWhereOthersMayWriteIt) {
  ASSERT_TRUE(replace_runtime_file(folder_, "word", "mine"));
  ::chmod(file_.c_str(), 0620);
  EXPECT_EQ(refusal(), ErrorCode::PermissionDenied);
  ::chmod(file_.c_str(), 0600);
  ::chmod(folder_.c_str(), 0707);
  EXPECT_EQ(refusal(), ErrorCode::PermissionDenied);
  EXPECT_FALSE(replace_runtime_file(folder_, "word", "again"));
}

TEST_F(RuntimeFile, ProvesNothingWhereItIsALink) {
  ASSERT_TRUE(replace_runtime_file(folder_, "other", "planted"));
  std::filesystem::create_symlink(folder_ + "/other", file_);
  EXPECT_EQ(refusal(), ErrorCode::PermissionDenied);
  const std::string planted = directory_.path() + "/planted";
  std::filesystem::create_symlink(folder_, planted);
  EXPECT_FALSE(read_runtime_file(planted, "other"));
}

TEST_F(RuntimeFile, LiesWhereTheUsersRunTimeFilesLie) {
  const EnvironmentScope scope(EnvironmentScope::Variables{{"XDG_RUNTIME_DIR", "/run/user/7"}});
  EXPECT_EQ(runtime_folder(), "/run/user/7/firebreak");
  const EnvironmentScope none(EnvironmentScope::Variables{{"XDG_RUNTIME_DIR", ""}});
  EXPECT_NE(runtime_folder().find("/firebreak"), std::string::npos);
}

}  // namespace
}  // namespace firebreak::os
