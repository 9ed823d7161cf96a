// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/kmsg_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

namespace firebreak::softgpu {
namespace {

TEST(KmsgRing, KeepsTextAndTime) {
  const auto ring = std::make_unique<KmsgRing>();
  ring->post(5, "one");
  ring->post(7, "and another one");
  ASSERT_TRUE(ring->read(1));
  EXPECT_EQ(ring->read(0)->text, "one");
  EXPECT_EQ(ring->read(1)->text, "and another one");
  EXPECT_EQ(ring->read(1)->due_ns, 7);
  EXPECT_FALSE(ring->read(2));
}

TEST(KmsgRing, ForgetsTheOldestAndCutsTheLong) {
  const auto ring = std::make_unique<KmsgRing>();
  for (std::size_t i = 0; i < KmsgRing::capacity + 3; ++i) ring->post(0, std::string(1000, 'x'));
  EXPECT_EQ(ring->oldest_sequence(), 3u);
  EXPECT_FALSE(ring->read(2));
  ASSERT_TRUE(ring->read(3));
  EXPECT_EQ(ring->read(3)->text.size(), KmsgRing::text_bytes_max);
}

TEST(KmsgRing, ReadersNeverSeeAMixtureOfLines) {
  const auto ring = std::make_unique<KmsgRing>();
  constexpr std::uint64_t lines_each = 2000;
  auto write = [&](char letter) {
    for (std::uint64_t i = 0; i < lines_each; ++i) ring->post(0, std::string(100, letter));
  };
  std::thread first(write, 'a');
  std::thread second(write, 'b');
  for (std::uint64_t sequence = 0; sequence < 2 * lines_each; ++sequence) {
    while (ring->next_sequence() <= sequence) std::this_thread::yield();
    const auto line = ring->read(sequence);
    if (!line) continue;  // being written, or overwritten
    EXPECT_EQ(std::set<char>(line->text.begin(), line->text.end()).size(), 1u);
  }
  first.join();
  second.join();
  EXPECT_TRUE(ring->read(2 * lines_each - 1));
}

}  // namespace
}  // namespace firebreak::softgpu
