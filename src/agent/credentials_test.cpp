// SPDX-License-Identifier: Apache-2.0
#include "agent/credentials.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

TEST(Credentials, AreWhatTheTenantWasGiven) {
  Credentials credentials;
  const std::string token = credentials.token_of("llm").value();
  EXPECT_EQ(credentials.token_of("llm").value(), token);
  EXPECT_NE(credentials.token_of("other").value(), token);
  EXPECT_TRUE(credentials.are("llm", token));
  EXPECT_FALSE(credentials.are("llm", ""));
  EXPECT_FALSE(credentials.are("llm", token.substr(1)));
  EXPECT_FALSE(credentials.are("llm", token + "0"));
  EXPECT_FALSE(credentials.are("other", token));
}

TEST(Credentials, OfWhomNobodyWasPlacedAreNotAskedFor) {
  const Credentials credentials;
  EXPECT_TRUE(credentials.are("by-hand", ""));
}

TEST(Credentials, AreForgottenWithTheTenant) {
  Credentials credentials;
  const std::string token = credentials.token_of("llm").value();
  credentials.forget("llm");
  EXPECT_EQ(credentials.known_token_of("llm"), "");
  EXPECT_NE(credentials.token_of("llm").value(), token);
  credentials.restore("llm", token);
  EXPECT_TRUE(credentials.are("llm", token));
}

}  // namespace
}  // namespace firebreak::agent
