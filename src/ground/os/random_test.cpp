// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace firebreak::os {
namespace {

TEST(RandomToken, IsAnotherEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto token = random_token();
    ASSERT_TRUE(token);
    EXPECT_THAT(*token, testing::MatchesRegex("[0-9a-f]{32}"));
    seen.insert(*token);
  }
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace firebreak::os
