// SPDX-License-Identifier: Apache-2.0
#include "stage/step_mark.h"

#include <gtest/gtest.h>

namespace firebreak::stage {
namespace {

TEST(StepMark, IsReadFromALineOfProgress) {
  const auto mark = parse_step_mark("step 12 123456789");
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->step, 12u);
  EXPECT_EQ(mark->at_ns, 123456789);
}

TEST(StepMark, OtherLinesAreNone) {
  for (const char* line :
       {"", "step", "step ", "step 1", "step 1 ", "step x 2", "step 1 2 3", "a step 1 2"}) {
    EXPECT_FALSE(parse_step_mark(line)) << line;
  }
}

}  // namespace
}  // namespace firebreak::stage
