// SPDX-License-Identifier: Apache-2.0
#include "agent/resting/look_schedule.h"

#include <gmock/gmock.h>

#include <vector>

namespace firebreak::agent {
namespace {

using testing::ElementsAre;

TEST(LookSchedule, WaitsTwiceAsLongEachTimeAndNoLongerThanTheLongest) {
  std::vector<double> looks_ms;
  for (Nanoseconds since_question{0}; looks_ms.size() < 9; looks_ms.push_back(to_ms(since_question)))
    since_question += until_next_look(since_question);
  EXPECT_THAT(looks_ms, ElementsAre(2, 6, 14, 30, 62, 126, 226, 326, 426));
}

TEST(LookSchedule, ANewQuestionIsLookedAfterSoon) {
  EXPECT_EQ(until_next_look(Nanoseconds(0)), Milliseconds(2));
}

TEST(LookSchedule, ALookThatCameLateChangesLittle) {
  EXPECT_EQ(until_next_look(Milliseconds(7)), Milliseconds(9));
  EXPECT_EQ(until_next_look(std::chrono::hours(1)), Milliseconds(100));
}

}  // namespace
}  // namespace firebreak::agent
