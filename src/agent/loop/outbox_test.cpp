// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/outbox.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

std::string text_of(const os::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

struct OutboxTest : testing::Test {
  /// Letters from `number` on, until one waits; the number of the next one.
  int fill(int number) {
    for (;; ++number) {
      const auto state = outbox.put(ours, std::to_string(number), -1);
      if (!state || *state != Outbox::State::Sent) return number + 1;
    }
  }
  std::string next() {
    const auto message = its.receive(Milliseconds(0));
    return message ? text_of(*message) : "";
  }

  std::pair<os::Socket, os::Socket> pair = os::socket_pair().value();
  os::Socket& ours = pair.first;
  os::Socket& its = pair.second;
  Outbox outbox;
};

TEST_F(OutboxTest, WhereThereIsRoomNothingWaits) {
  EXPECT_EQ(outbox.put(ours, "0", -1).value(), Outbox::State::Sent);
  EXPECT_EQ(outbox.waiting(), 0u);
  EXPECT_EQ(next(), "0");
}

// The peer has read, and the loop has not yet been told that there is room.
TEST_F(OutboxTest, WhatIsPutBesideWhatWaitsComesAfterIt) {
  const int count = fill(0);
  ASSERT_EQ(outbox.waiting(), 1u);
  for (int i = 0; i < count - 1; ++i) ASSERT_EQ(next(), std::to_string(i));
  EXPECT_EQ(outbox.put(ours, std::to_string(count), -1).value(), Outbox::State::Full);
  EXPECT_EQ(next(), "");
  EXPECT_EQ(outbox.waiting(), 2u);
  EXPECT_EQ(outbox.flush(ours).value(), Outbox::State::Sent);
  EXPECT_EQ(next(), std::to_string(count - 1));
  EXPECT_EQ(next(), std::to_string(count));
  EXPECT_EQ(outbox.waiting(), 0u);
}

TEST_F(OutboxTest, WhoHasGoneIsSaidToHave) {
  its.release().reset();
  EXPECT_EQ(outbox.put(ours, "0", -1).value(), Outbox::State::Gone);
  EXPECT_EQ(outbox.waiting(), 0u);
}

// Letters that are taken again give their room back.
TEST_F(OutboxTest, SoManyMayWaitAndNotOneMore) {
  int number = fill(0);
  while (outbox.waiting() < Outbox::messages_max) {
    ASSERT_TRUE(outbox.put(ours, std::to_string(number++), -1));
  }
  EXPECT_EQ(outbox.put(ours, "x", -1).error().code, ErrorCode::ResourceExhausted);
  while (outbox.waiting() > 0) {
    while (next() != "") {
    }
    ASSERT_TRUE(outbox.flush(ours));
  }
  EXPECT_EQ(outbox.put(ours, "y", -1).value(), Outbox::State::Sent);
}

/// One that waits is ours until it is sent.
TEST_F(OutboxTest, SoManyDescriptorsMayWaitAndNotOneMore) {
  Outbox small(2);
  while (small.waiting() == 0) ASSERT_TRUE(small.put(ours, "filler", -1));
  EXPECT_TRUE(small.put(ours, "one", 0));
  EXPECT_TRUE(small.put(ours, "two", 0));
  EXPECT_TRUE(small.put(ours, "none", -1));
  EXPECT_EQ(small.put(ours, "three", 0).error().code, ErrorCode::ResourceExhausted);
  for (std::string text; text != "none";) {
    ASSERT_TRUE(small.flush(ours));
    text = next();
  }
  EXPECT_EQ(small.put(ours, "three", 0).value(), Outbox::State::Sent);
}

TEST_F(OutboxTest, SoManyBytesMayWaitAndNotOneMore) {
  fill(0);
  const std::string large(Outbox::bytes_max / 16, 'x');
  std::size_t count = 0;
  while (outbox.put(ours, large, -1)) ++count;
  EXPECT_EQ(count, 15u);  // the one that fill() left waits as well
  EXPECT_EQ(outbox.waiting(), 16u);
}

}  // namespace
}  // namespace firebreak::agent
