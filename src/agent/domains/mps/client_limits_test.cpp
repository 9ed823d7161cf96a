// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/client_limits.h"

#include <gmock/gmock.h>

namespace firebreak::mps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(ClientLimits, NoneSayNothing) {
  EXPECT_TRUE(check_limits({}));
  EXPECT_THAT(environment_of({}), IsEmpty());
}

TEST(ClientLimits, AreNvidiasVariables) {
  EXPECT_THAT(environment_of({25, 1024}), ElementsAre(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25"),
                                                      Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1024M")));
}

TEST(ClientLimits, MoreThanAllIsRefusedInWords) {
  EXPECT_TRUE(check_limits({100, 1}));
  const Status refused = check_limits({101, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(to_string(refused.error()), HasSubstr("use 1 to 100"));
}

}  // namespace
}  // namespace firebreak::mps
