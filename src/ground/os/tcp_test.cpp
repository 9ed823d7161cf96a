// SPDX-License-Identifier: Apache-2.0
#include "ground/os/socket.h"

#include <numeric>
#include <thread>

#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::os {
namespace {

struct Tcp : testing::Test {
  Loopback loopback;
  const Fd& listener = loopback.listener;

  Fd connect_client(int receive_bytes = 0) const { return loopback.connect_client(receive_bytes); }
  Fd accept_client() {
    auto accepted = accept_waiting(listener.get());
    EXPECT_TRUE(accepted) << to_string(accepted.error());
    return accepted ? std::move(*accepted) : Fd();
  }
  static std::size_t send_text(const Fd& to, const std::string& text) {
    return send_waiting(to.get(), std::as_bytes(std::span(text))).value();
  }
  static std::string read_all(const Fd& from, std::size_t bytes) { return Loopback::read_all(from, bytes); }
};

TEST_F(Tcp, WhoDoesNotWaitIsNotAccepted) {
  EXPECT_TRUE(is_tcp_listener(listener.get()));
  EXPECT_EQ(accept_waiting(listener.get()).error().code, ErrorCode::Timeout);
  const Fd client = connect_client();
  const Fd accepted = accept_client();
  EXPECT_FALSE(is_tcp_listener(accepted.get()));
  EXPECT_EQ(accept_waiting(listener.get()).error().code, ErrorCode::Timeout);
}

TEST_F(Tcp, CountsWhatWasWrittenByWhomever) {
  const Fd client = connect_client();
  const Fd accepted = accept_client();
  EXPECT_EQ(bytes_taken(accepted.get()).value(), 0u);
  EXPECT_EQ(send_text(accepted, "one"), 3u);
  EXPECT_EQ(bytes_taken(accepted.get()).value(), 3u);
  const Fd other(::dup(accepted.get()));
  EXPECT_EQ(send_text(other, "three"), 5u);
  EXPECT_EQ(bytes_taken(accepted.get()).value(), 8u);
  EXPECT_EQ(read_all(client, 8), "onethree");
  EXPECT_EQ(bytes_taken(other.get()).value(), 8u);
}

TEST_F(Tcp, CountsAlsoWhereTheClientIsSlowAndAcknowledgesMeanwhile) {
  const Fd client = connect_client(4096);
  const Fd accepted = accept_client();
  std::string text(std::size_t{4} << 20, '\0');
  std::iota(text.begin(), text.end(), '\0');
  std::string got;
  std::thread reader([&] { got = read_all(client, text.size()); });
  std::size_t sent = 0;
  int waits = 0;
  while (sent < text.size()) {
    const std::size_t more = send_text(accepted, text.substr(sent, 100'000));
    if (more == 0) ++waits;
    sent += more;
    ASSERT_EQ(bytes_taken(accepted.get()).value(), sent);
  }
  reader.join();
  EXPECT_TRUE(got == text);
  EXPECT_GT(waits, 0);
}

TEST_F(Tcp, AClientThatIsGoneIsUnavailable) {
  Fd client = connect_client();
  const Fd accepted = accept_client();
  const linger at_once{1, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client = Fd();
  Result<std::size_t> sent = std::size_t{0};
  while (sent) sent = send_waiting(accepted.get(), std::as_bytes(std::span("x", 1)));
  EXPECT_EQ(sent.error().code, ErrorCode::Unavailable);
}

TEST_F(Tcp, WhatIsNoConnectionIsRefused) {
  const auto [one, other] = std::move(socket_pair().value());
  EXPECT_EQ(bytes_taken(one.fd().get()).error().code, ErrorCode::InvalidArgument);
  EXPECT_FALSE(is_tcp_listener(one.fd().get()));
  EXPECT_FALSE(is_tcp_listener(0));
}

}  // namespace
}  // namespace firebreak::os
