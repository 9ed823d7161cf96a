// SPDX-License-Identifier: Apache-2.0
#include "ground/os/descriptors.h"

#include <fcntl.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ground/os/memory.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

class OpeningMarkTest : public testing::Test {
 protected:
  bool is_there() const { return is_marked(other_.get(), mark_).value(); }

  Fd opening_ = create_memory_file("marked", 4096).value();
  OpeningMark mark_ = mark_opening(opening_.get()).value();
  Fd other_ = reopen(opening_.get()).value();
};

TEST_F(OpeningMarkTest, IsThereAsLongAsItsOpening) {
  EXPECT_TRUE(is_there());
  opening_.reset();
  EXPECT_FALSE(is_there());
}

TEST_F(OpeningMarkTest, IsThereAsLongAsAnyDuplicate) {
  Fd duplicate(::dup(opening_.get()));
  opening_.reset();
  EXPECT_TRUE(is_there());
  duplicate.reset();
  EXPECT_FALSE(is_there());
}

TEST_F(OpeningMarkTest, IsThereAsLongAsAForkHasIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  opening_.reset();
  EXPECT_TRUE(is_there());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_there());
}

TEST_F(OpeningMarkTest, IsThereAsLongAsItIsMapped) {
  auto mapping = Mapping::of_file(opening_.get(), 4096, Protection::ReadWrite).value();
  opening_.reset();
  EXPECT_TRUE(is_there());
  mapping.reset();
  EXPECT_FALSE(is_there());
}

TEST_F(OpeningMarkTest, IsThereWhileADescriptorIsOnItsWay) {
  auto ends = socket_pair().value();
  const std::byte one{1};
  const int number = opening_.get();
  ASSERT_TRUE(ends.first.send(std::span(&one, 1), std::span(&number, 1), Milliseconds(1000)));
  opening_.reset();
  EXPECT_TRUE(is_there());
  ends.second = Socket(Fd());
  EXPECT_FALSE(is_there());
}

TEST_F(OpeningMarkTest, IsOfOneOpeningAlone) {
  Fd another = reopen(opening_.get()).value();
  const OpeningMark its = mark_opening(another.get()).value();
  another.reset();
  EXPECT_TRUE(is_there());
  EXPECT_FALSE(is_marked(other_.get(), its).value());
}

TEST_F(OpeningMarkTest, NeedsADescriptorForWriting) {
  const Fd reader(::open(("/proc/self/fd/" + std::to_string(opening_.get())).c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(mark_opening(reader.get()).error().code, ErrorCode::PermissionDenied);
}

// The lock is one as the software GPU locks its address spaces.
TEST(OpeningMarkOfALockedFile, IsToldFromTheLockAndFromAnyOther) {
  const Fd opening = create_memory_file("test", 4096).value();
  ASSERT_TRUE(lock_while_open(opening.get()));
  const Fd other = reopen(opening.get()).value();
  const OpeningMark mark = mark_opening(opening.get()).value();
  EXPECT_TRUE(is_locked_elsewhere(other.get()).value());
  EXPECT_TRUE(is_marked(other.get(), mark).value());
  EXPECT_FALSE(is_marked(other.get(), mark ^ 1).value());
}

TEST_F(OpeningMarkTest, IsNotALockOfMoreThanItsByte) {
  const OpeningMark another = first_mark + 7;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first_mark);
  lock.l_len = 100;
  ASSERT_EQ(::fcntl(opening_.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_FALSE(is_marked(other_.get(), another).value());
}

// A GPU's nodes are character devices.
TEST(OpeningMarkOfADevice, IsThereAsLongAsItsOpening) {
  Fd opening(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto mark = mark_opening(opening.get());
  ASSERT_TRUE(mark) << to_string(mark.error());
  const Fd other = reopen(opening.get()).value();
  EXPECT_TRUE(is_marked(other.get(), *mark).value());
  opening.reset();
  EXPECT_FALSE(is_marked(other.get(), *mark).value());
}

}  // namespace
}  // namespace firebreak::os
