// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fuse_file.h"

namespace firebreak::os {
namespace {

struct RegularFile : testing::Test {
  RealKernel kernel;
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string path = directory.path() + "/log";

  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
};

TEST_F(RegularFile, OfOthersIsOpenedOnlyOnAFileSystemOfOurs) {
  const Fd here = kernel.open(path, O_RDWR | O_CREAT).value();
  EXPECT_TRUE(open_regular_file_of_others(kernel, "/proc/self/fd/" + std::to_string(here.get())));
  FuseFile fuse;
  if (!fuse.file()) GTEST_SKIP() << "nobody may mount here";
  const auto opened =
      open_regular_file_of_others(kernel, "/proc/self/fd/" + std::to_string(fuse.file().get()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(fuse.questions(), 0);
}

/// What a child with that root, of which only /proc is a mount of its own, finds of a file; -1: it may not
/// have such a root.
int found_in_chroot(const std::string& root, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_there =
        ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mkdir((root + "/proc").c_str(), 0755) == 0 &&
        ::mount("/proc", (root + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
        ::chroot(root.c_str()) == 0 && ::chdir("/") == 0;
    if (!is_there) ::_exit(255);
    RealKernel kernel;
    ::_exit(open_regular_file_of_others(kernel, path) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

// sbuild's root, for one, is no mount point, and /proc/self/mountinfo does not list it.
TEST_F(RegularFile, OfOthersIsOpenedInAPlainChroot) {
  append("x");
  const int found = found_in_chroot(directory.path(), "/log");
  if (found < 0) GTEST_SKIP() << "nobody may have a root of its own here";
  EXPECT_EQ(found, 0);
}

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

/// 0, or the error with which that user's process does not open the pipe.
int opening_error_of(uid_t user, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(user) != 0) ::_exit(255);
    ::_exit(::open(path.c_str(), O_WRONLY | O_NONBLOCK) >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A client of a parked domain that cannot open the pipe of its core dump ends the others (H100).
TEST_F(RegularFile, APipeThatIsGivenToAUserIsOpenedByThatUserAlone) {
  constexpr uid_t tenant = 65534;
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_TRUE(make_fifo(pipe));
  if (::geteuid() != 0) {
    EXPECT_EQ(give_to_user(pipe, ::geteuid() + 1).error().code, ErrorCode::PermissionDenied);
    return;
  }
  const auto reader = kernel.open(pipe, O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(reader);
  ASSERT_TRUE(give_to_user(pipe, tenant));
  EXPECT_EQ(opening_error_of(tenant, pipe), EACCES) << "nobody else gets through the folder yet";
  ASSERT_TRUE(let_through(directory.path()));
  EXPECT_EQ(opening_error_of(tenant, pipe), 0);
  EXPECT_EQ(opening_error_of(tenant - 1, pipe), EACCES);
}

TEST(PlainFile, IsOneAndNoLinkToOne) {
  const auto folder = TemporaryDirectory::create().value();
  const std::string file = folder.path() + "/file", link = folder.path() + "/link";
  EXPECT_FALSE(is_plain_file(file));
  EXPECT_TRUE(make_file(file));
  EXPECT_TRUE(is_plain_file(file));
  std::filesystem::create_symlink(file, link);
  EXPECT_FALSE(is_plain_file(link));
  EXPECT_FALSE(is_plain_file(folder.path()));
}

TEST(MakeFile, MakesAnEmptyOneThatAllMayReadAndTouchesNoOther) {
  const auto folder = TemporaryDirectory::create().value();
  const std::string file = folder.path() + "/file", other = folder.path() + "/other";
  ASSERT_TRUE(make_file(file));
  EXPECT_EQ(std::filesystem::file_size(file), 0u);
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms(0444),
            std::filesystem::perms(0444));
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms(0022),
            std::filesystem::perms::none);
  std::ofstream(other) << "kept";
  EXPECT_TRUE(make_file(other));
  EXPECT_EQ(std::filesystem::file_size(other), 4u);
  std::filesystem::create_symlink(folder.path() + "/nowhere", folder.path() + "/link");
  EXPECT_TRUE(make_file(folder.path() + "/link"));
  EXPECT_FALSE(is_there(folder.path() + "/nowhere")) << "a link is not followed";
  EXPECT_FALSE(make_file(folder.path() + "/none/file"));
}

TEST(RemoveFile, TakesALinkAndNotWhatItLeadsTo) {
  const auto folder = TemporaryDirectory::create().value();
  const std::string file = folder.path() + "/file", link = folder.path() + "/link";
  ASSERT_TRUE(make_file(file));
  std::filesystem::create_symlink(file, link);
  EXPECT_TRUE(remove_file(link));
  EXPECT_FALSE(is_there(link));
  EXPECT_TRUE(is_there(file));
  EXPECT_TRUE(remove_file(link)) << "it is not there";
  EXPECT_FALSE(remove_file(folder.path())) << "a folder";
}

}  // namespace
}  // namespace firebreak::os
