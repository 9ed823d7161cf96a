// SPDX-License-Identifier: Apache-2.0
#include "characterize/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "characterize/example_results.h"

namespace firebreak::characterize {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MediansDiffer, OnlyByMoreThanTheySpread) {
  EXPECT_TRUE(medians_differ(spread_of({1, 1, 1}), spread_of({2, 2, 2})));
  EXPECT_TRUE(medians_differ(spread_of({2, 2, 2}), spread_of({1, 1, 1})));
  EXPECT_FALSE(medians_differ(spread_of({1, 1, 5}), spread_of({2, 2, 2}))) << "the middle halves overlap";
  EXPECT_FALSE(medians_differ(spread_of({100, 100, 100}), spread_of({105, 105, 105}))) << "within a tenth";
  EXPECT_FALSE(medians_differ(spread_of({1, 1}), spread_of({2, 2}))) << "too few values";
}

TEST(Compare, FindsNothingInTheSame) {
  const Results results = example::results({"a", "b"}, 3);
  const Comparison comparison = compare(results, results);
  EXPECT_THAT(comparison.changes, IsEmpty());
  EXPECT_THAT(comparison.only_before, IsEmpty());
  EXPECT_THAT(comparison.only_after, IsEmpty());
  EXPECT_FALSE(comparison.medians.empty());
  EXPECT_THAT(render(comparison), HasSubstr("nothing changed in the kinds that both have"));
}

TEST(Compare, NamesAnotherFate) {
  Results after = example::results({"a"}, 1);
  after.runs[0].participants["co_client"] = {};
  const Comparison comparison = compare(example::results({"a"}, 1), after);
  EXPECT_THAT(render(comparison), HasSubstr("a: co_client: CUDA_ERROR_ILLEGAL_ADDRESS -> lives"));
}

TEST(Compare, NamesOtherSourcesAndXids) {
  Results after = example::results({"a"}, 1);
  after.runs[0].signals.clear();
  const std::string text = render(compare(example::results({"a"}, 1), after));
  EXPECT_THAT(text, HasSubstr("a: xids: 31 -> none"));
  EXPECT_THAT(text, HasSubstr("a: first_seen_by: uvm_event -> nobody"));
  EXPECT_THAT(text, HasSubstr("uvm_event, xid -> cuda_error, cuda_error_co_client"));
}

TEST(Compare, NamesAMedianThatMoved) {
  Results after = example::results({"a"}, 3);
  for (auto& run : after.runs) run.signals[1].after_ms = 33;
  const Comparison comparison = compare(example::results({"a"}, 3), after);
  ASSERT_EQ(comparison.changes.size(), 1U);
  EXPECT_EQ(comparison.changes[0].what, "xid p50 ms");
  EXPECT_EQ(comparison.changes[0].before, "3.00");
  EXPECT_EQ(comparison.changes[0].after, "33.00");
}

TEST(Compare, NamesKindsThatOnlyOneHas) {
  Results after = example::results({"b", "c"}, 1);
  after.runs[1].problem = "no domain";
  const Comparison comparison = compare(example::results({"a", "c"}, 1), after);
  EXPECT_THAT(comparison.only_before, ElementsAre("a", "c"));
  EXPECT_THAT(comparison.only_after, ElementsAre("b"));
  EXPECT_THAT(comparison.changes, IsEmpty());
}

TEST(RenderedComparison, SaysWhereBothCameFrom) {
  EXPECT_THAT(render(compare(example::results({"a"}, 1), example::results({"a"}, 1))),
              HasSubstr("before: Some GPU, driver 580.1, 2026-11-21, abc123\nafter:  Some GPU"));
}

}  // namespace
}  // namespace firebreak::characterize
