// SPDX-License-Identifier: Apache-2.0
#include "ground/os/owned_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/// Whoever it is for reads it, and can neither write it nor let himself write it.
TEST(OwnedFile, ItsReaderOnlyReadsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  ASSERT_EQ(::chmod(directory->path().c_str(), 0755), 0);
  const std::string path = directory->path() + "/file";
  ASSERT_TRUE(replace_owned_file(directory->path(), "file", "content", 4711));
  EXPECT_EQ(reader_of(path).value(), 4711u);
  const auto as_user = [&path](uid_t user) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(99);
      const bool reads = ::open(path.c_str(), O_RDONLY) >= 0;
      const bool writes = ::open(path.c_str(), O_WRONLY) >= 0 || ::truncate(path.c_str(), 1'000) == 0;
      ::_exit((reads ? 1 : 0) + (writes ? 2 : 0) + (::chmod(path.c_str(), 0666) == 0 ? 4 : 0));
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(as_user(4711), 1);
  EXPECT_EQ(as_user(4712), 0);
}

TEST(OwnedFile, WhereThereAreNoAccessListsThatIsSeen) {
  EXPECT_FALSE(has_access_lists("/proc/self/status"));
  const Fd file(::open("/proc/self/comm", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file);
  const Status let = let_user_read(file, 4711);
  ASSERT_FALSE(let);
  EXPECT_EQ(let.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(reader_of("/proc/self/comm").value(), ::geteuid());
}

}  // namespace
}  // namespace firebreak::os
