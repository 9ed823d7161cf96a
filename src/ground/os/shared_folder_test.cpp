// SPDX-License-Identifier: Apache-2.0
// Tests of what root makes another user's, and what it leaves alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "ground/os/file.h"

namespace firebreak::os {
namespace {

constexpr uid_t theirs = 65531;
constexpr gid_t their_group = 65532;

class SharedFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  }
  std::string file(const std::string& name) const { return directory_.path() + "/" + name; }
  void make(const std::string& name, uid_t owner) const {
    ASSERT_TRUE(make_file(file(name)));
    ASSERT_EQ(::chown(file(name).c_str(), owner, 0), 0);
  }
  static struct stat look_at(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info;
  }
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
};

TEST_F(SharedFolder, IsRootsAndStickyForTheGroup) {
  ASSERT_TRUE(share_folder(directory_.path(), their_group));
  const auto info = look_at(directory_.path());
  EXPECT_EQ(info.st_uid, 0U);
  EXPECT_EQ(info.st_gid, their_group);
  EXPECT_EQ(info.st_mode & 07777U, 01771U);
}

TEST_F(SharedFolder, IsNoneOfSomebodyElseAndNoLink) {
  ASSERT_TRUE(make_directories(file("theirs")));
  ASSERT_EQ(::chown(file("theirs").c_str(), theirs, 0), 0);
  EXPECT_EQ(share_folder(file("theirs"), their_group).error().code, ErrorCode::PermissionDenied);
  ASSERT_TRUE(make_directories(file("roots")));
  ASSERT_EQ(::symlink(file("roots").c_str(), file("link").c_str()), 0);
  EXPECT_FALSE(share_folder(file("link"), their_group));
  EXPECT_EQ(look_at(file("roots")).st_gid, 0U);
}

TEST_F(SharedFolder, OfRootsAloneIsSeenToBeSo) {
  ASSERT_TRUE(make_directories(file("roots")));
  EXPECT_TRUE(is_roots_folder(file("roots")));
  ASSERT_EQ(::symlink(file("roots").c_str(), file("link").c_str()), 0);
  EXPECT_FALSE(is_roots_folder(file("link")));
  make("file", 0);
  EXPECT_FALSE(is_roots_folder(file("file")));
  EXPECT_FALSE(is_roots_folder(file("nothing")));
  for (const mode_t mode : {0720U, 0702U}) {
    ASSERT_EQ(::chmod(file("roots").c_str(), mode), 0);
    EXPECT_FALSE(is_roots_folder(file("roots")));
  }
  ASSERT_EQ(::chmod(file("roots").c_str(), 0711), 0);
  ASSERT_EQ(::chown(file("roots").c_str(), theirs, 0), 0);
  EXPECT_FALSE(is_roots_folder(file("roots")));
}

TEST_F(SharedFolder, AFolderIsHandedOverWithWhatIsRoots) {
  make("roots", 0);
  make("users", 1000);
  make("twice", 0);
  ASSERT_EQ(::link(file("twice").c_str(), file("again").c_str()), 0);
  ASSERT_TRUE(make_fifo(file("pipe")));
  ASSERT_TRUE(give_to_user(file("pipe"), 1000));
  ASSERT_EQ(::symlink("/etc/passwd", file("link").c_str()), 0);
  ASSERT_TRUE(hand_over_folder(directory_.path(), theirs, their_group));
  EXPECT_EQ(look_at(directory_.path()).st_uid, theirs);
  EXPECT_EQ(look_at(file("roots")).st_uid, theirs);
  EXPECT_EQ(look_at(file("users")).st_uid, 1000U);
  EXPECT_EQ(look_at(file("twice")).st_uid, 0U) << "it may be another file of root's";
  EXPECT_EQ(look_at(file("pipe")).st_uid, 1000U);
  EXPECT_EQ(look_at(file("pipe")).st_gid, their_group);
  EXPECT_EQ(look_at(file("pipe")).st_mode & 07777U, 0640U);
  EXPECT_EQ(look_at(file("link")).st_uid, 0U);
  EXPECT_EQ(look_at("/etc/passwd").st_uid, 0U);
}

TEST_F(SharedFolder, OfAFolderThatIsTheirsAlreadyNothingIsTrusted) {
  make("roots", 0);
  ASSERT_EQ(::chown(directory_.path().c_str(), theirs, 0), 0);
  EXPECT_TRUE(hand_over_folder(directory_.path(), theirs, their_group));
  EXPECT_EQ(look_at(file("roots")).st_uid, 0U);
  EXPECT_FALSE(hand_over_folder(directory_.path(), theirs + 1, their_group));
  EXPECT_TRUE(hand_over_folder(file("nothing"), theirs, their_group));
}

TEST_F(SharedFolder, OnlyASocketOfOthersGoes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = file("socket");
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  make("file", 0);
  remove_socket_of_others(file("file"), theirs);
  EXPECT_TRUE(is_there(file("file")));
  remove_socket_of_others(path, 0);
  EXPECT_TRUE(is_there(path));
  remove_socket_of_others(path, theirs);
  EXPECT_FALSE(is_there(path));
}

TEST_F(SharedFolder, WhatTheyLeftOfAnotherTypeGoes) {
  const std::string elsewhere = file("elsewhere");
  ASSERT_TRUE(make_directories(elsewhere));
  make("elsewhere/roots", 0);
  for (const FileType type : {FileType::Folder, FileType::Socket}) {
    ASSERT_EQ(::symlink(elsewhere.c_str(), file("link").c_str()), 0);
    ASSERT_TRUE(remove_if_of_other_type(file("link"), theirs, type));
    EXPECT_TRUE(is_there(file("link"))) << "it is root's";
    ASSERT_EQ(::lchown(file("link").c_str(), theirs, 0), 0);
    ASSERT_TRUE(remove_if_of_other_type(file("link"), theirs, type));
    EXPECT_FALSE(is_there(file("link")));
    make("file", theirs);
    ASSERT_TRUE(remove_if_of_other_type(file("file"), theirs, type));
    EXPECT_FALSE(is_there(file("file")));
  }
  ASSERT_TRUE(make_directories(file("folder/in/it")));
  ASSERT_EQ(::symlink(elsewhere.c_str(), file("folder/link").c_str()), 0);
  ASSERT_EQ(::chown(file("folder").c_str(), theirs, 0), 0);
  ASSERT_TRUE(remove_if_of_other_type(file("folder"), theirs, FileType::Folder));
  EXPECT_TRUE(is_there(file("folder")));
  ASSERT_TRUE(remove_if_of_other_type(file("folder"), theirs, FileType::Socket));
  EXPECT_FALSE(is_there(file("folder")));
  EXPECT_TRUE(is_there(file("elsewhere/roots")));
}

TEST_F(SharedFolder, WhatTheyMadeOrNamedGoes) {
  make("roots", 0);
  ASSERT_TRUE(remove_if_by_user(file("roots"), theirs));
  EXPECT_TRUE(is_there(file("roots")));
  ASSERT_EQ(::link(file("roots").c_str(), file("again").c_str()), 0);
  ASSERT_TRUE(remove_if_by_user(file("again"), theirs));
  EXPECT_FALSE(is_there(file("again")));
  EXPECT_TRUE(is_there(file("roots")));
  make("theirs", theirs);
  ASSERT_TRUE(remove_if_by_user(file("theirs"), theirs));
  EXPECT_FALSE(is_there(file("theirs")));
  EXPECT_TRUE(remove_if_by_user(file("nothing"), theirs));
}

TEST_F(SharedFolder, WhereAFileLiesIsSeen) {
  ASSERT_TRUE(make_directories(file("in")));
  ASSERT_TRUE(make_directories(file("other")));
  make("in/file", theirs);
  make("other/file", theirs);
  const Fd in = find_file(file("in/file")).value();
  const Fd other = find_file(file("other/file")).value();
  EXPECT_FALSE(lies_in(in, file("in"), theirs)) << "the folder is another user's";
  ASSERT_EQ(::chown(file("in").c_str(), theirs, 0), 0);
  ASSERT_EQ(::chown(file("other").c_str(), theirs, 0), 0);
  EXPECT_TRUE(lies_in(in, file("in"), theirs));
  EXPECT_FALSE(lies_in(other, file("in"), theirs));
  ASSERT_EQ(::symlink(file("other").c_str(), file("link").c_str()), 0);
  EXPECT_FALSE(lies_in(other, file("link"), theirs));
  ASSERT_TRUE(remove_file(file("in/file")));
  EXPECT_FALSE(lies_in(in, file("in"), theirs));
}

TEST_F(SharedFolder, ThatOthersMayWriteIsSeen) {
  EXPECT_FALSE(may_others_write(directory_.path()));
  for (const mode_t mode : {0720U, 0702U, 01771U}) {
    ASSERT_EQ(::chmod(directory_.path().c_str(), mode), 0);
    EXPECT_TRUE(may_others_write(directory_.path()));
  }
}

}  // namespace
}  // namespace firebreak::os
