// SPDX-License-Identifier: Apache-2.0
#include "program/rest/host_content.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "ground/os/memory.h"

namespace firebreak::rest {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

TEST(HostContent, ChunksAreAllOfEachAreaInItsOrder) {
  const auto content = HostContent::of({{0x1000, 10}, {0x8000, 4}});
  ASSERT_TRUE(content);
  EXPECT_EQ(content->size_bytes(), 14U);
  const auto chunks = content->chunks(4);
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0].on_gpu, 0x1000U);
  EXPECT_EQ(chunks[2].on_gpu, 0x1008U);
  EXPECT_EQ(chunks[2].size_bytes, 2U);
  EXPECT_EQ(chunks[2].on_host, chunks[0].on_host + 8);
  EXPECT_EQ(chunks[3].on_gpu, 0x8000U);
  for (const Chunk& each : chunks) std::memset(each.on_host, 7, each.size_bytes);
}

TEST(HostContent, OthersAreLeftWithSomeMemory) {
  EXPECT_TRUE(check_room(768 * mib, 1024 * mib));
  const Status refused = check_room(769 * mib, 1024 * mib);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("769 MiB, and 1024 are left"));
  EXPECT_FALSE(check_room(1, 100 * mib)) << "less is left than others need";
  EXPECT_TRUE(check_room(15 * 1024 * mib, 16 * 1024 * mib));
  EXPECT_FALSE(check_room(15 * 1024 * mib + 1, 16 * 1024 * mib));
  EXPECT_TRUE(check_room(~std::uint64_t{0}, std::nullopt));
}

TEST(HostContent, MoreThanThereIsIsRefused) {
  const auto content = HostContent::of({{0, std::uint64_t{1} << 46U}});
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::ResourceExhausted);
}

/// A child of fork() would keep it for as long as it lives.
TEST(HostContent, ChildrenDoNotGetIt) {
  const auto content = HostContent::of({{0, mib}});
  ASSERT_TRUE(content);
  std::byte* const word = content->chunks(mib)[0].on_host;
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::_exit(os::copy_if_readable(&byte, word, 1) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace firebreak::rest
