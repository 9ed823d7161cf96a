// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/exceptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

std::vector<std::string> apply(std::string_view exceptions) {
  return places(apply_exceptions({{"src/a.cpp", 3, "os-calls", "m"}, {"src/b.cpp", 4, "os-calls", "m"}},
                                 exceptions, "x"));
}

TEST(Exceptions, ALineCoversItsRuleInItsFile) {
  EXPECT_THAT(apply("# why\n\nos-calls src/a.cpp: it must\n"), testing::ElementsAre("src/b.cpp:4"));
}

TEST(Exceptions, ALineThatCoversNothingIsAFinding) {
  EXPECT_THAT(apply("os-calls src/c.cpp: it must\n"),
              testing::ElementsAre("src/a.cpp:3", "src/b.cpp:4", "x:1"));
}

TEST(Exceptions, ALineWithoutAReasonOrRuleIsAFinding) {
  EXPECT_THAT(apply("os-calls src/a.cpp:\n"), testing::ElementsAre("src/a.cpp:3", "src/b.cpp:4", "x:1"));
  EXPECT_THAT(apply("no-such-rule src/a.cpp: because\n"),
              testing::ElementsAre("src/a.cpp:3", "src/b.cpp:4", "x:1"));
  EXPECT_THAT(apply("os-calls src/a.cpp because\n"),
              testing::ElementsAre("src/a.cpp:3", "src/b.cpp:4", "x:1"));
}

}  // namespace
}  // namespace firebreak::tidy
