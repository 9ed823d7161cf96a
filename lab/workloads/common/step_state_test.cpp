// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/step_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::workloads {
namespace {

using ::testing::HasSubstr;

TEST(StepState, GoesToWhatWasCommittedBeforeTheNextStep) {
  const StepState active{7, 4};
  StepState standby{7, 0};
  ASSERT_TRUE(standby.restore(active.bytes(), 5));
  EXPECT_EQ(standby.step, 4u);
}

TEST(StepState, RefusesWhatIsNotItsOwnAndStaysAsItWas) {
  const StepState active{7, 4};
  const auto message_of = [&active](StepState standby, std::size_t size_bytes, std::uint64_t next_step) {
    const StepState before = standby;
    const Status restored = standby.restore(active.bytes().first(size_bytes), next_step);
    EXPECT_EQ(standby.fingerprint, before.fingerprint);
    EXPECT_EQ(standby.step, before.step);
    return restored ? std::string("restored") : restored.error().message;
  };
  EXPECT_THAT(message_of({7, 0}, 8, 5), HasSubstr("8 bytes"));
  EXPECT_THAT(message_of({8, 0}, 16, 5), HasSubstr("other options"));
  EXPECT_THAT(message_of({7, 0}, 16, 6), HasSubstr("step 4, not 5"));
}

}  // namespace
}  // namespace firebreak::workloads
