// SPDX-License-Identifier: Apache-2.0
#include "ground/os/claimed_name.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace firebreak::os {
namespace {

TEST(ClaimedName, IsOnesForAsLongAsItIsKept) {
  const std::string name = "firebreak-test-" + std::to_string(::getpid());
  auto first = claim_name(name);
  ASSERT_TRUE(first);
  const auto second = claim_name(name);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_TRUE(claim_name(name + "-2"));
  first->reset();
  EXPECT_TRUE(claim_name(name));
  EXPECT_FALSE(claim_name(std::string(200, 'x')));
}

}  // namespace
}  // namespace firebreak::os
