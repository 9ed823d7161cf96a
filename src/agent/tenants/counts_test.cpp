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
  counts.past_faults = {{11,
                         "sm",
                         "lost",
                         "a",
                         "rogue",
                         "Xid 13",
                         "/kubepods/pod1",
                         "1q2w3e4",
                         "2026-11-29T08:10:05Z",
                         {13, 43},
                         {{"llm", "its standby goes on"}},
                         {"Xid 13 names nobody"},
                         {"report-1"}}};
  counts.last_id = 12;
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

TEST(Counts, AnIdIsShortAndIsGivenOnce) {
  const auto at = [](std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); };
  Counts counts;
  EXPECT_EQ(counts.new_id(at(1'764'403'805)), "1mjnajx");
  EXPECT_EQ(counts.new_id(at(1'764'403'805)), "1mjnajy") << "a second one in the same second";
  EXPECT_EQ(counts.new_id(at(1'764'403'804)), "1mjnajz") << "the clock was put back";
  Counts next = counts_in(to_json(counts));
  EXPECT_EQ(next.new_id(at(1'764'403'804)), "1mjnak0") << "the next agent";
  EXPECT_EQ(Counts().new_id(at(1'764'403'900)), "1mjnanw") << "the machine was started again: it is later";
}

TEST(Counts, FaultsOfAgentsThatGaveNoIdsAreRead) {
  const Counts read = counts_in(nlohmann::json::parse(
      R"({"past_faults": [{"at_ns": 7, "class": "sm", "what": "Xid 13", "xids": 3, "touched": [7], "reports": [7]}]})"));
  ASSERT_EQ(read.past_faults.size(), 1u);
  EXPECT_EQ(read.past_faults[0].id, "");
  EXPECT_EQ(read.past_faults[0].what, "Xid 13");
  EXPECT_TRUE(read.past_faults[0].xids.empty());
}

// All of the last faults have to fit into what is kept.
TEST(Counts, AnAccountHasAnEndAndLosesTheLeastTellingFirst) {
  Counts counts;
  PastFault fault;
  fault.id = "1mjnajx";
  fault.what = std::string(1000, '\x01');  // which is longer in a document
  fault.saw.assign(100, std::string(1000, '\x01'));
  fault.touched.assign(1000, {"llm", "goes on"});
  fault.touched.front() = {"plain", "ended"};
  fault.xids = {13, 43};
  const PastFault& kept = counts.note_fault(FaultClass::Sm, FaultOutcome::Lost, fault);
  EXPECT_LE(to_json(counts)["past_faults"][0].dump().size(), Counts::longest_account_bytes);
  EXPECT_EQ(kept.id, "1mjnajx");
  EXPECT_EQ(kept.xids.size(), 2u);
  ASSERT_EQ(kept.saw.size(), 1u);
  EXPECT_EQ(kept.saw[0].size(), Counts::longest_word_bytes);
  ASSERT_GT(kept.touched.size(), 1u);
  EXPECT_EQ(kept.touched.front().tenant, "plain");
}

TEST(Counts, OneUsersFaultsLeaveHalfOfThePlacesToOthers) {
  Counts counts;
  const auto note = [&counts](const char* user, std::int64_t at) {
    PastFault fault{at, {}, {}, "a", "its", "it"};
    fault.user = user;
    counts.note_fault(FaultClass::Sm, FaultOutcome::Contained, fault);
  };
  for (std::int64_t at = 0; at < 32; ++at) note("alice", at);
  for (std::int64_t at = 100; at < 300; ++at) note("mallory", at);
  EXPECT_EQ(std::ranges::count(counts.past_faults, "alice", &PastFault::user), 32);
  EXPECT_EQ(counts.past_faults.back().at_ns, 299);
  counts = {};
  for (std::int64_t at = 0; at < 70; ++at) note("mallory", at);
  EXPECT_EQ(counts.past_faults.size(), Counts::most_past_faults) << "nobody else has any";
  EXPECT_EQ(counts.past_faults.front().at_ns, 6);
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
