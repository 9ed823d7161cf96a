// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/teller.h"

#include <gtest/gtest.h>

#include <memory>

#include "ground/os/event_loop.h"
#include "tests/doubles/agent/surroundings_test_support.h"

namespace firebreak::agent {
namespace {

TEST(Teller, OneUserHasSoManyConnectionsThatAreToldOfEvents) {
  const auto loop = std::move(os::EventLoop::create().value());
  DeafHandler nobody;
  Server server(*loop, nobody);
  const Credentials credentials;
  FakeClock clock;
  Teller teller(clock, server, credentials);
  constexpr Asking alice{Entrance::Tenants, 1000}, bob{Entrance::Tenants, 1001},
      operators{Entrance::Operators, 1000};
  std::uint64_t next = 1;
  for (; next <= Teller::subscribers_of_user_max; ++next) EXPECT_TRUE(teller.subscribe(next, alice));
  const Status refused = teller.subscribe(next, alice);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(refused.error().message, "user 1000 is told of events on 128 connections already");
  EXPECT_TRUE(teller.subscribe(1, alice)) << "it is one of them";
  EXPECT_TRUE(teller.subscribe(next + 1, bob));
  EXPECT_TRUE(teller.subscribe(next + 2, operators));
  teller.forget(1);
  EXPECT_TRUE(teller.subscribe(next, alice));
}

}  // namespace
}  // namespace firebreak::agent
