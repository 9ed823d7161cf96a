// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/credentials.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

constexpr Asking by_operator{Entrance::Operators, 0};
constexpr Asking by_alice{Entrance::Tenants, 1000};

TEST(Credentials, AreWhatTheTenantWasGiven) {
  Credentials credentials;
  const std::string token = credentials.token_of("llm").value();
  EXPECT_EQ(credentials.token_of("llm").value(), token);
  EXPECT_NE(credentials.token_of("other").value(), token);
  for (const Asking& who : {by_operator, by_alice}) {
    EXPECT_TRUE(credentials.admit("llm", token, who));
    EXPECT_FALSE(credentials.admit("llm", "", who));
    EXPECT_FALSE(credentials.admit("llm", token.substr(1), who));
    EXPECT_FALSE(credentials.admit("llm", token + "0", who));
    EXPECT_FALSE(credentials.admit("other", token, who));
  }
}

TEST(Credentials, OfWhomNobodyWasPlacedAreItsUser) {
  Credentials credentials;
  EXPECT_TRUE(credentials.admit("by-hand", "", by_alice));
  credentials.claim("by-hand", 1001);
  EXPECT_FALSE(credentials.admit("by-hand", "", by_alice));
  EXPECT_TRUE(credentials.admit("by-hand", "", by_operator));
  EXPECT_TRUE(credentials.admit("by-hand", "", {Entrance::Tenants, 1001}));
}

TEST(Credentials, ATenantIsOfWhoCameFirst) {
  Credentials credentials;
  EXPECT_EQ(credentials.owner_of("llm"), std::nullopt);
  credentials.claim("llm", 1000);
  credentials.claim("llm", 1001);
  EXPECT_EQ(credentials.owner_of("llm"), 1000u);
  EXPECT_EQ(credentials.count_of(1000), 1u);
  EXPECT_EQ(credentials.count_of(1001), 0u);
}

TEST(Credentials, AreForgottenWithTheTenant) {
  Credentials credentials;
  const std::string token = credentials.token_of("llm").value();
  credentials.claim("llm", 1000);
  credentials.forget("llm");
  EXPECT_EQ(credentials.known_token_of("llm"), "");
  EXPECT_EQ(credentials.owner_of("llm"), std::nullopt);
  EXPECT_NE(credentials.token_of("llm").value(), token);
  credentials.restore("llm", token, 1000);
  EXPECT_TRUE(credentials.admit("llm", token, by_alice));
  EXPECT_EQ(credentials.owner_of("llm"), 1000u);
}

}  // namespace
}  // namespace firebreak::agent
