// SPDX-License-Identifier: Apache-2.0
#include "characterize/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "inject/catalogue.h"

namespace firebreak::characterize {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::size_t> kinds_in(const std::vector<Step>& steps) {
  std::vector<std::size_t> kinds;
  for (const Step& step : steps) kinds.push_back(step.kind);
  return kinds;
}

std::vector<std::string> names_of(const std::vector<const inject::Kind*>& kinds) {
  std::vector<std::string> names;
  for (const inject::Kind* kind : kinds) names.emplace_back(kind->name);
  return names;
}

TEST(ChooseKinds, TakesAllWithoutAName) {
  EXPECT_EQ(choose_kinds({}).value().size(), inject::catalogue().size());
}

TEST(ChooseKinds, KeepsTheCataloguesOrderAndTakesNothingTwice) {
  const std::string first{inject::catalogue()[0]->name};
  const std::string second{inject::catalogue()[1]->name};
  EXPECT_THAT(names_of(choose_kinds({second, first, second}).value()), ElementsAre(first, second));
}

TEST(ChooseKinds, TakesClassesWithDashesToo) {
  const auto kinds = choose_kinds({"mmu-replayable"}).value();
  EXPECT_GT(kinds.size(), 1U);
  for (const inject::Kind* kind : kinds) EXPECT_EQ(kind->fault_class, fault::FaultClass::MmuReplayable);
}

TEST(ChooseKinds, SaysWhatWasProbablyMeant) {
  const auto kinds = choose_kinds({"unmapped-stor"});
  ASSERT_FALSE(kinds.has_value());
  EXPECT_EQ(kinds.error().code, ErrorCode::NotFound);
  EXPECT_THAT(to_string(kinds.error()), HasSubstr("'unmapped-store-far'"));
}

TEST(Plan, RunsEachKindOnceARepeat) {
  const auto steps = plan(5, 3, 1);
  ASSERT_EQ(steps.size(), 15U);
  for (int repeat = 1; repeat <= 3; ++repeat) {
    std::set<std::size_t> kinds;
    for (std::size_t place = 0; place < 5; ++place) {
      const Step& step = steps[static_cast<std::size_t>(repeat - 1) * 5 + place];
      EXPECT_EQ(step.repeat, repeat);
      EXPECT_EQ(step.place, place);
      kinds.insert(step.kind);
    }
    EXPECT_EQ(kinds.size(), 5U);
  }
}

TEST(Plan, IsTheSameForOneSeedEverywhere) {
  EXPECT_THAT(kinds_in(plan(6, 1, 1)), ElementsAre(1, 3, 0, 4, 5, 2));
  EXPECT_EQ(kinds_in(plan(40, 2, 7)), kinds_in(plan(40, 2, 7)));
  EXPECT_NE(kinds_in(plan(40, 2, 7)), kinds_in(plan(40, 2, 8)));
}

TEST(Plan, ShufflesEachRepeatAnew) {
  const auto kinds = kinds_in(plan(40, 2, 1));
  EXPECT_NE(std::vector(kinds.begin(), kinds.begin() + 40), std::vector(kinds.begin() + 40, kinds.end()));
}

struct LeftOf : testing::Test {
  std::vector<std::string> names = {"a", "b"};
  std::vector<Step> steps = {{0, 1, 0}, {1, 1, 1}, {0, 2, 0}, {1, 2, 1}};
  static characterize::Run run_of(const std::string& kind, int repeat) {
    characterize::Run run;
    run.kind = kind;
    run.repeat = repeat;
    return run;
  }
};

TEST_F(LeftOf, IsEverythingAtTheBeginningAndNothingAtTheEnd) {
  EXPECT_EQ(left_of(steps, names, {}).size(), 4U);
  EXPECT_THAT(left_of(steps, names, {run_of("a", 1), run_of("b", 1), run_of("a", 2), run_of("b", 2)}),
              IsEmpty());
}

TEST_F(LeftOf, HoldsWhatHasNotRunInTheOrderOfThePlan) {
  const auto left = left_of(steps, names, {run_of("b", 1), run_of("a", 2)});
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].kind, 0U);
  EXPECT_EQ(left[0].repeat, 1);
  EXPECT_EQ(left[1].kind, 1U);
  EXPECT_EQ(left[1].repeat, 2);
}

TEST_F(LeftOf, HoldsARunWithAProblemAgain) {
  auto broken = run_of("a", 1);
  broken.problem = "no domain";
  EXPECT_EQ(left_of(steps, names, {broken}).size(), 4U);
}

TEST_F(LeftOf, DoesNotAskAKindAgainThatWasRefused) {
  auto refused = run_of("a", 1);
  refused.refused = "not on this device";
  EXPECT_THAT(kinds_in(left_of(steps, names, {refused})), ElementsAre(1, 1));
}

TEST(Progress, TellsTheTimeThatIsLeftOnceARunTookSome) {
  EXPECT_EQ(to_line({11, 41, 3, 10, 0, 100, {}}), "kind 12 of 41, repeat 3 of 10");
  EXPECT_EQ(to_line({11, 41, 3, 10, 2, 100, std::chrono::seconds(5)}),
            "kind 12 of 41, repeat 3 of 10, about 4 min 10 s left");
}

TEST(DurationWords, FitTheLength) {
  EXPECT_EQ(duration_words(Milliseconds(7600)), "8 s");
  EXPECT_EQ(duration_words(std::chrono::seconds(250)), "4 min 10 s");
  EXPECT_EQ(duration_words(std::chrono::minutes(62)), "1 h 2 min");
}

}  // namespace
}  // namespace firebreak::characterize
