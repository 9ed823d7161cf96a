// SPDX-License-Identifier: Apache-2.0
#include "characterize/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "characterize/example_results.h"

namespace firebreak::characterize {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(MostFrequent, IsTheFirstOfSeveral) {
  EXPECT_EQ(most_frequent({{"a", 1}, {"b", 2}, {"c", 2}}), "b");
  EXPECT_EQ(most_frequent({}), "");
}

TEST(FateOf, PrefersTheErrorToTheEnd) {
  Participant participant;
  EXPECT_EQ(fate_of(participant), "lives");
  participant.end = "exit 3";
  EXPECT_EQ(fate_of(participant), "exit 3");
  participant.error = "CUDA_ERROR_UNKNOWN";
  EXPECT_EQ(fate_of(participant), "CUDA_ERROR_UNKNOWN");
}

TEST(Summarize, CountsWhatBecameOfEachRole) {
  Results results = example::results({"stray-store"}, 3);
  results.runs[1].participants["co_client"] = {};
  const KindSummary kind = summarize(results).kinds.at(0);
  EXPECT_EQ(kind.runs, 3);
  EXPECT_THAT(kind.fates.at("faulter"), ElementsAre(Pair("CUDA_ERROR_ILLEGAL_ADDRESS", 3)));
  EXPECT_THAT(kind.fates.at("co_client"),
              ElementsAre(Pair("CUDA_ERROR_ILLEGAL_ADDRESS", 2), Pair("lives", 1)));
  EXPECT_THAT(kind.xids, ElementsAre(Pair("31", 3)));
  EXPECT_THAT(kind.first_seen_by, ElementsAre(Pair("uvm_event", 3)));
  EXPECT_THAT(kind.attribution, ElementsAre(Pair("right", 3)));
}

TEST(Summarize, TakesTheFirstTimeOfEachSource) {
  Results results = example::results({"stray-store"}, 1);
  results.runs[0].signals.push_back({"xid", "Xid 31", 9, 31, ""});
  const KindSummary kind = summarize(results).kinds.at(0);
  EXPECT_EQ(kind.signal_ms.at("xid").p50, 3);
  EXPECT_EQ(kind.signal_ms.at("cuda_error").p50, 2);
  EXPECT_EQ(kind.signal_ms.at(co_client_error_source).p50, 4);
}

TEST(Summarize, KeepsTheStallsOfSurvivorsAlone) {
  Results results = example::results({"stray-store"}, 1);
  results.runs[0].participants["co_client"].longest_stall = Stall{0, 4};
  const KindSummary kind = summarize(results).kinds.at(0);
  EXPECT_EQ(kind.stall_ms.size(), 2U);
  EXPECT_EQ(kind.stall_ms.at("other_domain").p50, 5);
  EXPECT_EQ(kind.stall_ms.at("outside").p50, 6);
}

TEST(Summarize, TellsNewClientsOfTheirOwnStart) {
  Results results = example::results({"stray-store"}, 2);
  results.runs[1].restart = {};
  const KindSummary kind = summarize(results).kinds.at(0);
  EXPECT_EQ(kind.served_ms->p50, 130);
  EXPECT_EQ(kind.new_client_start_ms->p50, 50);
  EXPECT_EQ(kind.not_served, 1);
}

TEST(Summarize, LeavesOutRunsThatDoNotCount) {
  Results results = example::results({"stray-store"}, 2);
  results.runs[1].problem = "no domain";
  const KindSummary kind = summarize(results).kinds.at(0);
  EXPECT_EQ(kind.runs, 1);
  EXPECT_EQ(kind.problems, 1);
  EXPECT_EQ(kind.last_problem, "no domain");
  EXPECT_EQ(kind.signal_ms.at("xid").count, 1U);
  EXPECT_FALSE(kind.as_expected());
}

TEST(Summarize, SaysHowOftenEachMismatchCame) {
  Results results = example::results({"a", "b"}, 2);
  results.runs[0].mismatches = {"the faulter lived"};
  const Summary summary = summarize(results);
  EXPECT_THAT(summary.kinds[0].mismatches, ElementsAre(Pair("the faulter lived", 1)));
  EXPECT_FALSE(summary.kinds[0].as_expected());
  EXPECT_TRUE(summary.kinds[1].as_expected());
}

TEST(TypicalRuns, AreTheMedianOfTheRunsAsExpected) {
  Results results = example::results({"stray-store"}, 4);
  const double last_error_ms[] = {20, 5, 10, 90};
  for (std::size_t i = 0; i < 4; ++i) results.runs[i].participants["co_client"].error_ms = last_error_ms[i];
  EXPECT_THAT(summarize(results).typical_runs, ElementsAre(Pair("mmu_replayable", 2)));
  results.runs[2].mismatches = {"something"};
  EXPECT_THAT(summarize(results).typical_runs, ElementsAre(Pair("mmu_replayable", 0)));
}

TEST(TypicalRuns, AreOfTheFirstKindThatBehavedAsExpected) {
  Results results = example::results({"a", "b", "c"}, 1);
  results.runs[0].mismatches = {"something"};
  EXPECT_THAT(summarize(results).typical_runs, ElementsAre(Pair("mmu_replayable", 1)));
}

TEST(TypicalRuns, AreOfTheFirstKindWhereNoneBehavedAsExpected) {
  Results results = example::results({"a", "b"}, 1);
  for (auto& run : results.runs) run.mismatches = {"something"};
  EXPECT_THAT(summarize(results).typical_runs, ElementsAre(Pair("mmu_replayable", 0)));
}

TEST(TypicalRuns, AreNoneWhereNothingCounts) {
  Results results = example::results({"a"}, 1);
  results.runs[0].problem = "no domain";
  EXPECT_THAT(summarize(results).typical_runs, IsEmpty());
}

}  // namespace
}  // namespace firebreak::characterize
