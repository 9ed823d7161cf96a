// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/counts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace firebreak::agent {
namespace {

using fault::FaultClass;

Counts some_counts() {
  Counts counts;
  counts.agent_starts = 3;
  counts.of_fault(FaultClass::Sm, FaultOutcome::FailedOver) = 4;
  counts.of_fault(FaultClass::Unknown, FaultOutcome::Lost) = 5;
  counts.known_culprits = 6;
  counts.unknown_culprits = 7;
  counts.of_promotion(Fence::HandOver) = 8;
  counts.promotion_times.add(Milliseconds(12));
  counts.domain_restarts["a"] = {9, 10};
  counts.past_faults = {{11, "sm", "lost", "a", "rogue", "Xid 13", "/kubepods/pod1"}};
  return counts;
}

TEST(Counts, AreTheSameAfterTheyWereWrittenDown) {
  EXPECT_EQ(counts_in(to_json(some_counts())), some_counts());
  EXPECT_EQ(counts_in(nlohmann::json::parse(to_json(some_counts()).dump())), some_counts());
}

TEST(Counts, OfAnAgentThatKeptNoneAreZero) {
  for (const char* text : {"null", "{}", "[]", "7", R"({"faults":[1],"promotion_times":{"counts":[1]}})"})
    EXPECT_EQ(counts_in(nlohmann::json::parse(text)), Counts()) << text;
}

TEST(Counts, WhatIsNoCountIsZero) {
  auto written = to_json(some_counts());
  written["agent_starts"] = -1;
  written["culprits"]["known"] = "many";
  const Counts read = counts_in(written);
  EXPECT_EQ(read.agent_starts, 0u);
  EXPECT_EQ(read.known_culprits, 0u);
  EXPECT_EQ(read.unknown_culprits, 7u);
}

TEST(Counts, TheLastFaultsAreTold) {
  Counts counts;
  for (std::int64_t at = 0; at < 70; ++at)
    counts.note_fault(FaultClass::Sm, FaultOutcome::Lost, {at, {}, {}, "a", {}, std::string(1000, 'x')});
  EXPECT_EQ(counts.of_fault(FaultClass::Sm, FaultOutcome::Lost), 70u);
  ASSERT_EQ(counts.past_faults.size(), Counts::most_past_faults);
  EXPECT_EQ(counts.past_faults.front().at_ns, 6);
  EXPECT_EQ(counts.past_faults.back().at_ns, 69);
  EXPECT_EQ(counts.past_faults.back().fault_class, "sm");
  EXPECT_EQ(counts.past_faults.back().outcome, "lost");
  EXPECT_EQ(counts.past_faults.back().what.size(), Counts::longest_word_bytes);
}

TEST(Counts, EachSeriesIsThereBeforeTheFirstFault) {
  const auto none = to_json(Counts());
  EXPECT_EQ(none["faults"].size(), Counts::classes);
  for (const auto& its : none["faults"]) EXPECT_EQ(its.size(), Counts::outcomes);
  EXPECT_EQ(none["faults"]["mmu_replayable"]["failed_over"], 0);
  EXPECT_EQ(none["promotions"].size(), Counts::fences);
}

TEST(Counts, ATimeIsCountedUnderTheFirstBoundThatItDoesNotPass) {
  DurationCounts times;
  times.add(Milliseconds(5));
  times.add(Milliseconds(6));
  times.add(Milliseconds(11'000));
  EXPECT_EQ(times.counts[0], 1u);
  EXPECT_EQ(times.counts[1], 1u);
  EXPECT_EQ(times.counts.back(), 1u);
  EXPECT_EQ(times.sum_us, 11'011'000u);
}

}  // namespace
}  // namespace firebreak::agent
