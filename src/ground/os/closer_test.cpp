// SPDX-License-Identifier: Apache-2.0
#include "ground/os/closer.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <optional>
#include <string_view>
#include <vector>

#include "ground/os/socket.h"
#include "tests/doubles/os/closer_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::os {
namespace {

struct CloserTest : testing::Test {
  Loopback loopback;
  std::shared_ptr<Closer> closer = std::make_shared<Closer>();

  /// A socket in which something lingers that nobody has received: its close() lasts until the client has
  /// read.
  struct Hanging {
    Fd fd;
    Fd client;
    std::size_t sent = 0;
  };
  Hanging make_hanging() {
    auto [connection, client, sent] = loopback.lingering();
    auto [ours, theirs] = std::move(socket_pair().value());
    const std::byte one{1};
    const int number = connection.get();
    EXPECT_TRUE(theirs.send(std::span(&one, 1), std::span(&number, 1), Milliseconds(0)));
    Hanging made{ours.release(), std::move(client), sent};
    made.fd.close_by(closer);
    return made;
  }
};

TEST_F(CloserTest, NobodyWaitsForWhatDoesNotClose) {
  auto [connection, client, sent] = loopback.lingering();
  connection.close_by(closer);
  connection.reset();
  EXPECT_FALSE(connection);
  EXPECT_EQ(Loopback::read_to_end(client), sent) << "it is closed once all was read";
}

TEST_F(CloserTest, ItGoesWithWhoeverOwnsIt) {
  auto [connection, client, sent] = loopback.lingering();
  connection.close_by(closer);
  {
    std::vector<Fd> owner;
    owner.push_back(std::move(connection));
    Fd last;
    last = std::move(owner.front());
  }
  EXPECT_EQ(Loopback::read_to_end(client), sent);
}

TEST_F(CloserTest, WhatIsGivenAwayIsTheOthersToClose) {
  Fd fd = loopback.connect_client();
  fd.close_by(closer);
  const int number = fd.release();
  EXPECT_EQ(fd.closer(), nullptr);
  EXPECT_GE(::fcntl(number, F_GETFD), 0);
  ::close(number);
}

/// A child that is about to become another program.
TEST_F(CloserTest, WhoeverHasACopyDoesNotWaitEither) {
  auto [connection, client, sent] = loopback.lingering();
  Fd copy(::dup(connection.get()));
  connection.close_by(closer);
  connection.reset();
  await_closers();
  copy.reset();
  EXPECT_EQ(Loopback::read_to_end(client), sent);
}

TEST_F(CloserTest, OneThatHangsKeepsNobodyBehindIt) {
  Hanging hanging = make_hanging();
  hanging.fd.reset();
  const Fd other_client = loopback.connect_client();
  Fd other = loopback.accept_client();
  other.close_by(closer);
  other.reset();
  EXPECT_EQ(Loopback::read_to_end(other_client), 0u);
  EXPECT_EQ(Loopback::read_to_end(hanging.client), hanging.sent);
}

TEST_F(CloserTest, WhoeverHadItNeedNotStay) {
  auto [connection, client, sent] = loopback.lingering();
  connection.close_by(std::exchange(closer, nullptr));
  connection.reset();
  EXPECT_EQ(Loopback::read_to_end(client), sent);
}

/// Data that is left in a socket is closed with it.
struct HangUpTest : CloserTest {
  HangUpTest() {
    auto [our_end, their_end] = std::move(socket_pair().value());
    ours.emplace(std::move(our_end));
    theirs.emplace(std::move(their_end));
    ours->close_by(closer);
  }
  void send(std::string_view text, std::vector<int> descriptors = {}) {
    EXPECT_TRUE(theirs->send(std::as_bytes(std::span(text)), descriptors, Milliseconds(0)));
  }
  bool needs_closer() {
    ours->hang_up_for_good();
    return ours->fd().closer() != nullptr;
  }

  std::optional<Socket> ours;
  std::optional<Socket> theirs;
};

TEST_F(HangUpTest, OneInWhichNothingIsLeftNeedsNoCloser) {
  EXPECT_FALSE(needs_closer());
  EXPECT_EQ(theirs->receive(Milliseconds(0)).error().code, ErrorCode::Unavailable);
}

TEST_F(HangUpTest, OneInWhichMessagesAreLeftNeedsNoneEither) {
  for (const char* text : {"one", "two", "three"}) send(text);
  EXPECT_FALSE(needs_closer());
}

TEST_F(HangUpTest, OneInWhichDescriptorsAreLeftNeedsOne) {
  send("one");
  send("two", {loopback.connect_client().get()});
  EXPECT_TRUE(needs_closer());
}

/// An empty message reads as the end.
TEST_F(HangUpTest, WhatIsBehindAnEmptyMessageIsSeen) {
  EXPECT_EQ(::send(theirs->fd().get(), "", 0, 0), 0);
  send("two", {loopback.connect_client().get()});
  EXPECT_TRUE(needs_closer());
}

TEST_F(HangUpTest, OneInWhichVeryManyAreLeftKeepsNobody) {
  for (int i = 0; i < 100; ++i) send("one");
  EXPECT_TRUE(needs_closer());
}

TEST_F(CloserTest, BeyondTheBoundTheyWaitForThoseBefore) {
  std::vector<Hanging> all;
  for (std::size_t i = 0; i < Closer::most_threads + 2; ++i) {
    all.push_back(make_hanging());
    all.back().fd.reset();
  }
  for (const Hanging& each : all) EXPECT_EQ(Loopback::read_to_end(each.client), each.sent);
}

/// A peer sends what it likes, also where that is refused or never read.
TEST_F(CloserTest, WhatComesByASocketIsClosedAsTheSocketIs) {
  auto [ours, theirs] = std::move(socket_pair().value());
  ours.close_by(closer);
  std::vector<Loopback::Lingering> sent;
  const auto send = [&](std::size_t bytes) {
    sent.push_back(loopback.lingering());
    std::vector<std::byte> message(bytes);
    iovec part{message.data(), message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    *item = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    *reinterpret_cast<int*>(CMSG_DATA(item)) = sent.back().connection.get();
    ASSERT_GT(::sendmsg(theirs.fd().get(), &header, 0), 0);
    sent.back().connection.reset();
  };
  send(1);
  send(most_bytes_in_a_message + 1);
  send(1);
  EXPECT_EQ(ours.receive(Milliseconds(-1))->descriptors.size(), 1u);
  EXPECT_EQ(ours.receive(Milliseconds(-1)).error().code, ErrorCode::Protocol);
  ours.release().reset();
  for (const Loopback::Lingering& each : sent) EXPECT_EQ(Loopback::read_to_end(each.client), each.sent);
}

}  // namespace
}  // namespace firebreak::os
