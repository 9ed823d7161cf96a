// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/reading_plan.h"

#include <gtest/gtest.h>

namespace firebreak::watch {
namespace {

Monotonic at(int ms) { return Monotonic(std::chrono::milliseconds(ms)); }

constexpr ReadingRules rules{.bell = false,
                             .step = std::chrono::microseconds(200),
                             .after_message = std::chrono::milliseconds(5),
                             .after_suspicion = std::chrono::milliseconds(250),
                             .idle_period = Nanoseconds(0)};

TEST(ReadingPlan, WaitsWhileNothingHappens) { EXPECT_EQ(ReadingPlan(rules).period(at(1)), std::nullopt); }

TEST(ReadingPlan, ReadsOnForAWhileAfterAMessage) {
  ReadingPlan plan(rules);
  plan.message(at(10));
  EXPECT_EQ(plan.period(at(14)), rules.step);
  EXPECT_EQ(plan.period(at(15)), std::nullopt);
}

TEST(ReadingPlan, ASuspicionLastsUntilTheSlowestXid) {
  ReadingPlan plan(rules);
  plan.suspicion(at(10));
  EXPECT_EQ(plan.period(at(259)), rules.step);
  EXPECT_EQ(plan.period(at(260)), std::nullopt);
}

TEST(ReadingPlan, AShortExpectationDoesNotEndALongOne) {
  ReadingPlan plan(rules);
  plan.suspicion(at(10));
  plan.message(at(11));
  EXPECT_EQ(plan.period(at(200)), rules.step);
}

TEST(ReadingPlan, WithABellASuspicionCostsNothing) {
  ReadingRules with_bell = rules;
  with_bell.bell = true;
  with_bell.idle_period = std::chrono::milliseconds(1);
  ReadingPlan plan(with_bell);
  plan.suspicion(at(10));
  EXPECT_EQ(plan.period(at(11)), std::nullopt);
  plan.message(at(12));
  EXPECT_EQ(plan.period(at(13)), rules.step);
}

TEST(ReadingPlan, SweepsAllTheTimeWhereItIsAskedTo) {
  ReadingRules sweeping = rules;
  sweeping.idle_period = std::chrono::milliseconds(1);
  ReadingPlan plan(sweeping);
  EXPECT_EQ(plan.period(at(1)), sweeping.idle_period);
  plan.message(at(2));
  EXPECT_EQ(plan.period(at(3)), rules.step);
}

}  // namespace
}  // namespace firebreak::watch
