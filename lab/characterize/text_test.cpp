// SPDX-License-Identifier: Apache-2.0
#include "characterize/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "characterize/example_results.h"

namespace firebreak::characterize {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Text, HasALineForEachKind) {
  const std::string text = render(summarize(example::results({"a", "b"}, 3)));
  EXPECT_THAT(text,
              ContainsRegex("\na +3  illegal address +illegal address +31 +uvm_event 1\\.00 +3 right\n"));
  EXPECT_THAT(text, ContainsRegex("\nb +3  "));
  EXPECT_THAT(text, HasSubstr("\n2 of 2 kinds as expected\n"));
}

TEST(Text, TellsWhatWasNotAsExpectedAndHowOften) {
  Results results = example::results({"a", "b"}, 2);
  results.runs[0].mismatches = {"the co-client lived"};
  const std::string text = render(summarize(results));
  EXPECT_THAT(text, HasSubstr("\n1 of 2 kinds as expected\n"));
  EXPECT_THAT(text, HasSubstr("  a: the co-client lived (1 of 2 runs)\n"));
}

TEST(Text, TellsOfRunsThatDidNotGetToTheirEnd) {
  Results results = example::results({"a"}, 1);
  results.runs[0].problem = "no domain";
  EXPECT_THAT(render(summarize(results)), HasSubstr("a: 1 runs did not get to their end: no domain"));
}

TEST(Text, TellsWhatWasRefusedAndWhatHasNotRun) {
  Results results = example::results({"a", "b"}, 1);
  results.runs.pop_back();
  results.runs[0].refused = "not on this device";
  const std::string text = render(summarize(results));
  EXPECT_THAT(text, ContainsRegex("\na +refused: not on this device\n"));
  EXPECT_THAT(text, ContainsRegex("\nb +has not run\n"));
  EXPECT_THAT(text, Not(HasSubstr("uvm_event")));
  EXPECT_THAT(text, HasSubstr("\n0 of 0 kinds as expected, 1 refused, 1 not run\n"));
}

}  // namespace
}  // namespace firebreak::characterize
