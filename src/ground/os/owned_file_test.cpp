// SPDX-License-Identifier: Apache-2.0
#include "ground/os/owned_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

TEST(OwnedFile, IsReplacedAsAWholeAndIsItsOwnersAlone) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  RealKernel kernel;
  for (const char* content : {"first, which is longer", "second"}) {
    ASSERT_TRUE(replace_owned_file(directory->path(), "file", content, ::geteuid()));
    EXPECT_EQ(kernel.read_file(directory->path() + "/file").value(), content);
  }
  struct stat info {};
  ASSERT_EQ(::stat((directory->path() + "/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(kernel.list_directory(directory->path()).value().size(), 1u) << "nothing else is left";
}

TEST(OwnedFile, DoesNotFollowALink) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  RealKernel kernel;
  const std::string other = directory->path() + "/other";
  ASSERT_TRUE(replace_owned_file(directory->path(), "other", "kept", ::geteuid()));
  std::filesystem::create_symlink(other, directory->path() + "/file");
  ASSERT_TRUE(replace_owned_file(directory->path(), "file", "new", ::geteuid()));
  EXPECT_EQ(kernel.read_file(other).value(), "kept");
  std::filesystem::create_directory_symlink(directory->path(), directory->path() + "/link");
  EXPECT_FALSE(replace_owned_file(directory->path() + "/link", "file", "new", ::geteuid()));
}

}  // namespace
}  // namespace firebreak::os
