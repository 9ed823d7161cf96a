// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "soak/epochs.h"
#include "soak/plan.h"
#include "soak/record.h"
#include "soak/resources.h"
#include "soak/takeovers.h"
#include "soak/told_steps.h"

namespace firebreak::soak {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

std::vector<Disturbance> all_of(std::uint64_t seed, std::uint32_t faults, std::uint32_t agent_kills) {
  Plan plan({seed, faults, agent_kills, {"trap", "unmapped-load-far"}});
  std::vector<Disturbance> disturbances;
  while (const auto disturbance = plan.next()) disturbances.push_back(*disturbance);
  return disturbances;
}

TEST(SoakPlan, TheSameSeedGivesTheSameBlows) {
  const auto first = all_of(7, 300, 10), again = all_of(7, 300, 10), other = all_of(8, 300, 10);
  const auto targets = [](const std::vector<Disturbance>& disturbances) {
    std::vector<Target> all;
    for (const Disturbance& disturbance : disturbances) all.push_back(disturbance.target);
    return all;
  };
  EXPECT_EQ(targets(first), targets(again));
  EXPECT_NE(targets(first), targets(other));
}

TEST(SoakPlan, HoldsSoManyFaultsAndKillsAndEveryTarget) {
  const auto disturbances = all_of(1, 300, 10);
  EXPECT_EQ(disturbances.size(), 300u);
  EXPECT_EQ(
      std::ranges::count_if(
          disturbances, [](const Disturbance& disturbance) { return disturbance.agent != AgentKill::None; }),
      10);
  std::set<Target> targets;
  std::set<std::string> kinds;
  for (const Disturbance& disturbance : disturbances) {
    targets.insert(disturbance.target);
    kinds.insert(disturbance.kind);
  }
  EXPECT_EQ(targets.size(), 6u);
  EXPECT_EQ(kinds, (std::set<std::string>{"", "trap", "unmapped-load-far"}));
}

TEST(SoakPlan, KeepsToTheTargetsThatWereNamed) {
  Plan plan({.seed = 3, .faults = 200, .kinds = {"trap"}, .targets = {Target::Server, Target::Neighbour}});
  std::map<Target, int> drawn;
  while (const auto disturbance = plan.next()) ++drawn[disturbance->target];
  EXPECT_THAT(drawn, UnorderedElementsAre(Pair(Target::Server, testing::Gt(20)),
                                          Pair(Target::Neighbour, testing::Gt(100))));
}

TEST(SoakPlan, TheEdgesChangeNothingOfWhatWasDrawnWithoutThem) {
  Plan plain({.seed = 5, .faults = 100, .agent_kills = 4, .kinds = {"trap"}});
  Plan same({.seed = 5, .faults = 100, .agent_kills = 4, .kinds = {"trap"}, .has_slow_agents = false});
  while (const auto disturbance = plain.next()) {
    const auto other = same.next();
    ASSERT_TRUE(other);
    EXPECT_EQ(disturbance->target, other->target);
    EXPECT_EQ(disturbance->stall, Milliseconds(0));
    EXPECT_EQ(disturbance->crowd + disturbance->tight_starts, 0u);
  }
}

TEST(SoakPlan, TheEdgesHaveAllOfThem) {
  Plan plan({.seed = 6,
             .faults = 600,
             .kinds = {"trap"},
             .targets = {edge_targets.begin(), edge_targets.end()},
             .has_slow_agents = true});
  std::map<Target, int> drawn;
  int stalls = 0, links = 0, starts = 0, visitors = 0;
  while (const auto disturbance = plan.next()) {
    ++drawn[disturbance->target];
    stalls += disturbance->stall > Milliseconds(0) ? 1 : 0;
    links += disturbance->breaks_active || disturbance->breaks_standby ? 1 : 0;
    starts += disturbance->tight_starts > 0 && disturbance->tight_descriptors > 0 ? 1 : 0;
    visitors += disturbance->crowd > 0 ? 1 : 0;
  }
  EXPECT_EQ(drawn.size(), 9u);
  EXPECT_GT(stalls, 20);
  EXPECT_EQ(links, drawn[Target::Link]);
  EXPECT_EQ(starts, drawn[Target::Starts]);
  EXPECT_EQ(visitors, drawn[Target::Crowd]);
}

TEST(SoakEpochs, HaveOneActiveEach) {
  Epochs epochs;
  const auto hears = [&](const char* what, std::uint32_t epoch, std::int64_t pid) {
    abi::Event event;
    event.what = abi::event_kind(what);
    event.tenant = "a";
    event.epoch = epoch;
    event.pid = pid;
    return epochs.hear(event).value_or("");
  };
  EXPECT_EQ(hears("promote", 1, 10), "");
  EXPECT_EQ(hears("promote", 1, 10), "") << "told again by the next agent";
  EXPECT_EQ(hears("begun anew", 2, 11), "");
  EXPECT_EQ(hears("begun anew", 2, 12), "a: epoch 2 began with process 12, after epoch 2 with process 11");
  EXPECT_EQ(hears("promote", 1, 11), "a: epoch 1 began with process 11, after epoch 2 with process 11");
  EXPECT_EQ(hears("memory released", 0, 0), "");
  EXPECT_EQ(hears("promote", 1, 20), "");
}

TEST(SoakLedger, AStepThatIsToldTwiceWasLost) {
  ToldSteps ledger;
  for (const std::uint64_t step : {0u, 1u, 4u}) ledger.hear({step, static_cast<std::int64_t>(step) * 100});
  EXPECT_THAT(ledger.repeated(), IsEmpty());
  EXPECT_EQ(ledger.longest_pause_ns(), 300);
  ledger.hear({1, 450});
  EXPECT_THAT(ledger.repeated(), ElementsAre(1u));
  EXPECT_EQ(ledger.steps_told(), 4u);
}

TEST(SoakLeaks, WhatGrowsWithTheFaultsIsOne) {
  const Resources before{{{"socket:[]", 40}}, 20'000, {{"socket:[]", 10}}, 8'000, 3, 0};
  Resources after = before;
  EXPECT_THAT(leaks(before, after), IsEmpty());
  after.agent_descriptors["socket:[]"] += 100;
  after.agent_descriptors["anon_inode:[pidfd]"] = 8;
  after.supervisor_descriptors["socket:[]"] += 1;
  after.shared_memory_files += 1;
  EXPECT_THAT(leaks(before, after),
              ElementsAre("the agent's descriptors of socket:[]: 40 before, 140 after",
                          "the supervisor's descriptors of socket:[]: 10 before, 11 after",
                          "files in /dev/shm: 3 before, 4 after"));
}

abi::Event event(const std::string& what, const std::string& tenant, std::int64_t at_ns,
                 const std::string& text = "") {
  abi::Event event;
  event.what = abi::event_kind(what);
  event.tenant = tenant;
  event.at_ns = at_ns;
  event.text = text;
  return event;
}

TEST(SoakTakeovers, AreTimedFromTheFaultToTheFirstKernel) {
  Takeovers takeovers;
  takeovers.hear(event("injected", "a", 1'000'000, "trap"));
  takeovers.hear(event("promote", "b", 1'500'000));
  takeovers.hear(event("resumed", "b", 1'600'000));
  takeovers.hear(event("resumed", "a", 1'700'000));
  EXPECT_THAT(takeovers.waits(), IsEmpty());
  takeovers.hear(event("promote", "a", 3'000'000));
  takeovers.hear(event("resumed", "a", 3'500'000));
  takeovers.hear(event("resumed", "a", 9'000'000));
  EXPECT_EQ(takeovers.promotions(), 2u);
  ASSERT_EQ(takeovers.waits().count("trap"), 1u);
  EXPECT_THAT(takeovers.waits().at("trap").promoted_ms, ElementsAre(2.0));
  EXPECT_THAT(takeovers.waits().at("trap").first_kernel_ms, ElementsAre(2.5));
}

TEST(SoakTakeovers, WhoIsLostWasNotTakenOver) {
  Takeovers takeovers;
  takeovers.hear(event("injected", "a", 1'000'000, "trap"));
  takeovers.hear(event("lost", "a", 2'000'000));
  takeovers.hear(event("promote", "a", 3'000'000));
  takeovers.hear(event("resumed", "a", 3'500'000));
  EXPECT_THAT(takeovers.waits(), IsEmpty());
}

TEST(SoakRecord, SaysWhatWasViolated) {
  Record record;
  EXPECT_THAT(to_text(record), HasSubstr("no committed step lost"));
  record.violations.emplace_back("tenant-3: committed step 9 was lost");
  EXPECT_THAT(to_text(record), HasSubstr("violated: tenant-3: committed step 9 was lost"));
  EXPECT_THAT(to_text(record), Not(HasSubstr("no committed step lost")));
}

}  // namespace
}  // namespace firebreak::soak
