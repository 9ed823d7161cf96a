// SPDX-License-Identifier: Apache-2.0
// A tenant's own clients: each byte once, whoever writes it.
#include "tests/client/session_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::testing_agent {
namespace {

struct Clients : SessionTest {
  os::Loopback loopback;
  os::Fd client = loopback.connect_client(4096);
  os::Fd connection{::accept4(loopback.listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  fb_session* active = join(FB_ROLE_ACTIVE);
  fb_session* standby = join(FB_ROLE_STANDBY);
  std::uint64_t taken = 0;

  ~Clients() override {
    fb_leave(standby);
    fb_leave(active);
  }
  fb_status send(fb_session* session, std::uint64_t offset, const std::string& text) {
    return fb_send(session, connection.get(), offset, text.data(), text.size(), &taken);
  }
  void promote() {
    agent->promote();
    fb_resume resume{};
    ASSERT_EQ(fb_wait_promotion(standby, -1, &resume), FB_OK) << fb_last_error(standby);
  }
  std::string read(std::size_t bytes) { return os::Loopback::read_all(client, bytes); }
};

TEST_F(Clients, TheSuccessorGoesOnWhereTheStreamStands) {
  ASSERT_EQ(send(active, 0, "one two"), FB_OK) << fb_last_error(active);
  EXPECT_EQ(taken, 7u);
  promote();
  ASSERT_EQ(send(standby, 0, "one two three"), FB_OK) << fb_last_error(standby);
  EXPECT_EQ(taken, 13u);
  ASSERT_EQ(send(standby, 8, "three four"), FB_OK);
  EXPECT_EQ(read(18), "one two three four");
}

TEST_F(Clients, OneWhoWasReplacedWritesNothing) {
  promote();
  EXPECT_EQ(send(active, 0, "late"), FB_ERROR_FENCED);
  ASSERT_EQ(send(standby, 0, "now"), FB_OK);
  EXPECT_EQ(taken, 3u);
  EXPECT_EQ(read(3), "now");
}

TEST_F(Clients, ASuccessorThatIsBehindIsToldSo) {
  ASSERT_EQ(send(active, 0, "one two three"), FB_OK);
  promote();
  ASSERT_EQ(send(standby, 0, "one"), FB_OK);
  EXPECT_EQ(taken, 13u);
}

TEST_F(Clients, BytesAreNeverLeftOut) {
  EXPECT_EQ(send(active, 1, "x"), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(fb_last_error(active), "bytes before these have not been sent");
  EXPECT_EQ(send(standby, 0, "x"), FB_ERROR_INVALID_ARGUMENT);
}

TEST_F(Clients, ASlowClientGetsAllOfIt) {
  const std::string text(std::size_t{6} << 20, 'x');
  ASSERT_EQ(send(active, 0, text), FB_OK);
  ASSERT_LT(taken, text.size());
  std::string got;
  while (got.size() < text.size()) {
    got += read(std::min(std::size_t{1} << 16, text.size() - got.size()));
    ASSERT_EQ(send(active, 0, text), FB_OK);
  }
  EXPECT_EQ(taken, text.size());
  EXPECT_TRUE(got == text);
}

TEST_F(Clients, OneThatHasGoneIsToldOf) {
  client = os::Fd();
  fb_status status = FB_OK;
  for (std::string all = "x"; status == FB_OK; all += "x") status = send(active, 0, all);
  EXPECT_EQ(status, FB_ERROR_CLIENT_GONE);
}

TEST_F(Clients, WhatIsNoConnectionIsRefused) {
  EXPECT_EQ(fb_send(active, 0, 0, "x", 1, &taken), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_send(active, connection.get(), 0, nullptr, 1, &taken), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_send(active, connection.get(), 0, nullptr, 0, &taken), FB_OK);
  EXPECT_EQ(fb_listen(active, -1), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_listener(active, nullptr), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_next_connection(active, 0, nullptr), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_release_connection(nullptr, 1), FB_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace firebreak::testing_agent
