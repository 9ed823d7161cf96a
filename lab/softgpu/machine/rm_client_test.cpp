// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/rm_client.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <limits>
#include <memory>

#include "ground/os/self.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {
namespace {

TEST(RmClient, ItsWorkIsSeenThroughADuplicate) {
  auto own = RmClient::create(std::chrono::milliseconds(70)).value();
  auto seen = RmClient::from(own.fd()).value();
  EXPECT_FALSE(seen.is_busy());
  own.begin_work();
  own.begin_work();
  own.end_work();
  EXPECT_TRUE(seen.is_busy());
  own.begin_wait();
  EXPECT_TRUE(seen.has_waiting_work());
  seen.end_all_work();
  EXPECT_FALSE(own.is_busy());
  EXPECT_FALSE(own.has_waiting_work());
  EXPECT_EQ(seen.owner_pid(), os::own_pid());
  EXPECT_EQ(seen.orphaned_work(), std::chrono::milliseconds(70));
}

TEST(RmClient, NothingWaitsAnyMoreWhoseServerHasEnded) {
  auto own = RmClient::create(std::nullopt).value();
  own.begin_wait();
  own.serve_by(os::own_pid());
  EXPECT_TRUE(own.has_waiting_work());
  own.serve_by(std::numeric_limits<pid_t>::max());
  EXPECT_FALSE(own.has_waiting_work());
}

TEST(RmClient, EndlessWorkHasNoEnd) {
  EXPECT_EQ(RmClient::create(std::nullopt).value().orphaned_work(), std::nullopt);
}

TEST(RmClient, AnotherFileIsNone) {
  const auto other = os::create_memory_file("other", sizeof(RmClientPage)).value();
  EXPECT_FALSE(RmClient::from(other.get()));
  EXPECT_FALSE(RmClient::from(UvmDescriptor::create().value().fd()));
}

// These decide whether a dead client's address space is still there.
TEST(UvmDescriptor, IsKeptByDuplicatesAndNotByWhoReadsAlong) {
  auto own = std::make_unique<UvmDescriptor>(UvmDescriptor::create().value());
  const auto watcher = os::reopen(own->fd()).value();
  const auto reader = UvmDescriptor::from(own->fd()).value();
  os::Fd duplicate(::dup(own->fd()));
  EXPECT_TRUE(os::is_locked_elsewhere(watcher.get()).value());
  own.reset();
  EXPECT_TRUE(os::is_locked_elsewhere(watcher.get()).value());
  duplicate.reset();
  EXPECT_FALSE(os::is_locked_elsewhere(watcher.get()).value());
}

TEST(RmClient, ItsQueuedWordsAreThereForWhoHasTheDescriptor) {
  auto own = RmClient::create(std::nullopt);
  ASSERT_TRUE(own);
  const auto others = RmClient::from(own->fd());
  ASSERT_TRUE(others);
  const auto first = own->queue_word({{0, 8}, 1, 4});
  own->queue_word({{1, 16}, 2, 8});
  own->finish_word(first);
  own->queue_word({{2, 24}, 3, 4});  // the word takes the place of the first
  const auto words = others->queued_words();
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].place.file, 1u);
  EXPECT_EQ(words[0].place.offset_bytes, 16u);
  EXPECT_EQ(words[0].size_bytes, 8u);
  EXPECT_EQ(words[1].value, 3u);
}

TEST(RmClient, ThereIsRoomForSoManyWords) {
  auto own = RmClient::create(std::nullopt);
  ASSERT_TRUE(own);
  for (std::size_t n = 0; n < RmClientPage::words_max; ++n)
    EXPECT_NE(own->queue_word({}), RmClient::no_ticket);
  EXPECT_EQ(own->queue_word({}), RmClient::no_ticket);
  own->finish_word(RmClient::no_ticket);
  EXPECT_EQ(own->queued_words().size(), RmClientPage::words_max);
}

}  // namespace
}  // namespace firebreak::softgpu
