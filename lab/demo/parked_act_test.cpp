// SPDX-License-Identifier: Apache-2.0
/// Tests of the fourth act's judge: each claim is false where what it claims was not observed.
#include "demo/parked_act.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "demo/judge.h"
#include "demo/parked_judge.h"
#include "demo/report.h"
#include "demo/table.h"

namespace firebreak::demo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t ms = 1'000'000;

Neighbour neighbour(const char* name, const char* domain) {
  return {name, domain, os::ExitStatus{0, 0}, true, 812, 0, 4.5, ""};
}

ParkedFault as_claimed(const char* kind) {
  ParkedFault fault;
  fault.fault = kind;
  fault.domain = "a";
  fault.rogue = 77;
  fault.culprits = {77};
  fault.named_at_ns = 1012 * ms;
  fault.told_to_end_at_ns = 1500 * ms;
  fault.report = stage::FaultReport{1000 * ms, 1600 * ms, "CUDA_ERROR_MISALIGNED_ADDRESS"};
  fault.exit = os::ExitStatus{3, 0};
  fault.neighbours = {neighbour("one", "a"), neighbour("two", "a")};
  fault.newcomer = neighbour("newcomer", "b");
  fault.mover = {neighbour("mover", "a"), "b", 1030 * ms, true, true};
  return fault;
}

Play play_of(const std::function<void(ParkedFault&)>& change = [](ParkedFault&) {}) {
  Play play{"soft", "trap", false, "2026-01-01", {}, {}, {"trap", "misaligned-load"}};
  ActRecord act;
  act.act = Act::Parked;
  act.parked = {as_claimed("trap"), as_claimed("misaligned-load")};
  change(act.parked.back());
  play.acts = {act};
  return play;
}

/// Claims of the fourth act alone that were not observed.
std::vector<std::string> not_observed(const Play& play) {
  std::vector<Check> checks;
  judge_parked(play, play.acts.front(), checks);
  std::vector<std::string> all;
  for (const Check& check : checks) {
    if (!check.observed) all.push_back(check.claim + " - " + check.instead);
  }
  return all;
}

TEST(ParkedAct, WhereAllWentAsClaimedAllIsObserved) { EXPECT_THAT(not_observed(play_of()), IsEmpty()); }

TEST(ParkedAct, OneWrongWordIsSaid) {
  EXPECT_THAT(
      not_observed(play_of([](ParkedFault& fault) { fault.neighbours[1].wrong_words = 1; })),
      ElementsAre("misaligned-load: two finishes with every word right - ended with status 0, 1 wrong "
                  "words, no error"));
}

TEST(ParkedAct, AMoverThatDidNotMoveOrDidNotLiveIsSaid) {
  EXPECT_THAT(
      not_observed(play_of([](ParkedFault& fault) { fault.mover.moved_to.clear(); })),
      ElementsAre("misaligned-load: mover goes on in another domain, in the same process - it did not "
                  "move"));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.mover.moved_to = "a"; })),
              ElementsAre(HasSubstr("it moved to domain a")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.mover.outlived_domain = false; })),
              ElementsAre(HasSubstr("mover outlives the domain that it has left")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.mover.is_protected_again = false; })),
              ElementsAre(HasSubstr("mover has a new spare afterwards")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.mover.program.wrong_words = 1; })),
              ElementsAre(HasSubstr("mover finishes with every word right")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.mover.program.domain = "b"; })),
              ElementsAre(HasSubstr("mover is in the rogue's domain")));
}

TEST(ParkedAct, ANeighbourThatDidNotFinishItsWorkIsSaid) {
  const std::vector<std::function<void(Neighbour&)>> ends = {
      [](Neighbour& each) {
        each.exit = os::ExitStatus{1, 0};
      },
      [](Neighbour& each) {
        each.exit = os::ExitStatus{0, 9};
      },
      [](Neighbour& each) { each.exit.reset(); },
      [](Neighbour& each) { each.error = "CUDA_ERROR_LAUNCH_FAILED"; },
      [](Neighbour& each) { each.has_counted = false; },
      [](Neighbour& each) { each.launches = 0; },
  };
  for (const auto& end : ends) {
    EXPECT_THAT(not_observed(play_of([&](ParkedFault& fault) { end(fault.neighbours[0]); })),
                ElementsAre(HasSubstr("misaligned-load: one finishes with every word right")));
    EXPECT_THAT(not_observed(play_of([&](ParkedFault& fault) { end(fault.newcomer); })),
                ElementsAre(HasSubstr("who comes meanwhile finishes")));
  }
}

TEST(ParkedAct, WhoIsNamedHasToBeTheRogueAlone) {
  for (const std::vector<pid_t>& culprits : {std::vector<pid_t>{}, {78}, {77, 78}}) {
    EXPECT_THAT(not_observed(play_of([&](ParkedFault& fault) { fault.culprits = culprits; })),
                ElementsAre(HasSubstr("misaligned-load: the rogue is named, and nobody else")));
  }
}

TEST(ParkedAct, ANeighbourElsewhereProvesNothing) {
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.neighbours[0].domain = "b"; })),
              ElementsAre("misaligned-load: one is in the rogue's domain - it was in domain b"));
}

TEST(ParkedAct, ACondemnedDomainThatTookSomebodyIsSaid) {
  EXPECT_THAT(
      not_observed(play_of([](ParkedFault& fault) { fault.newcomer.domain = "a"; })),
      ElementsAre("misaligned-load: who comes meanwhile is put into another domain - it was in domain a"));
}

TEST(ParkedAct, ARogueThatGotAResultIsSaid) {
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.report->error_name = "CUDA_SUCCESS"; })),
              ElementsAre(HasSubstr("the rogue gets no result")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) {
                fault.exit = os::ExitStatus{0, 0};
              })),
              ElementsAre(HasSubstr("the rogue gets no result")));
  EXPECT_THAT(not_observed(play_of([](ParkedFault& fault) { fault.report.reset(); })),
              ElementsAre(HasSubstr("the rogue gets no result")));
}

TEST(ParkedAct, ARogueThatIsEndedBeforeItsCallReturnsGotNoResult) {
  const auto end = [](ParkedFault& fault, std::int64_t answered_at_ns) {
    fault.exit = os::ExitStatus{0, SIGKILL};
    fault.report->answered_at_ns = answered_at_ns;
    fault.report->error_name = answered_at_ns == 0 ? "" : "CUDA_SUCCESS";
  };
  EXPECT_THAT(not_observed(play_of([&](ParkedFault& fault) { end(fault, 0); })), IsEmpty());
  EXPECT_THAT(not_observed(play_of([&](ParkedFault& fault) { end(fault, 9000 * ms); })),
              ElementsAre(HasSubstr("the rogue gets no result")));
}

TEST(ParkedAct, ARogueWhoseCallReturnedBeforeIsSaid) {
  EXPECT_THAT(
      not_observed(play_of([](ParkedFault& fault) { fault.report->answered_at_ns = 1400 * ms; })),
      ElementsAre(HasSubstr("misaligned-load: the rogue's call does not return while the others work")));
}

TEST(ParkedAct, AFaultThatWasNotPlayedIsSaid) {
  Play play = play_of();
  play.acts[0].parked.pop_back();
  EXPECT_THAT(not_observed(play), ElementsAre("misaligned-load: it is played - it was not"));
  play.acts[0].parked.emplace_back().fault = "misaligned-load";
  EXPECT_THAT(not_observed(play), testing::SizeIs(testing::Ge(6u)));
}

TEST(ParkedAct, APlayWithoutItsFourthActIsNoWholePlay) {
  Play play = play_of();
  play.acts.clear();
  EXPECT_THAT(render_verdict(judge(play)), HasSubstr("four acts are played - 0 were"));
}

TEST(ParkedAct, TheTableSaysWhatBecameOfEverybody) {
  const std::string table = render_table(play_of([](ParkedFault& fault) {
    fault.neighbours[1].wrong_words = 3;
    fault.culprits.clear();
  }));
  EXPECT_THAT(table, HasSubstr("rogue: named after 12.00 ms, then MISALIGNED_ADDRESS\n"));
  EXPECT_THAT(table, HasSubstr("one: finished, 812 launches right\n"));
  EXPECT_THAT(table, HasSubstr("two: ended with status 0, 3 wrong words, no error\n"));
  EXPECT_THAT(table, HasSubstr("newcomer: finished, 812 launches right, in domain b and not a\n"));
  EXPECT_THAT(table, HasSubstr("rogue: NOT NAMED after"));
}

TEST(ParkedAct, TheFileAndThePageHaveIt) {
  Play play = play_of();
  play.acts[0].parked[0].neighbours[0].error = "<b>";
  const auto json = nlohmann::json::parse(to_json(play, judge(play)));
  const auto& parked = json["acts"][0]["parked"];
  ASSERT_EQ(parked.size(), 2u);
  EXPECT_EQ(parked[1]["fault"], "misaligned-load");
  EXPECT_EQ(parked[1]["culprits"], nlohmann::json({77}));
  EXPECT_EQ(parked[1]["neighbours"][0]["wrong_words"], 0);
  EXPECT_EQ(parked[1]["neighbours"][1]["unharmed"], true);
  EXPECT_EQ(parked[0]["neighbours"][0]["unharmed"], false);
  EXPECT_EQ(parked[1]["rogue"]["error"], "CUDA_ERROR_MISALIGNED_ADDRESS");
  const std::string page = to_html(play, judge(play));
  EXPECT_THAT(page, HasSubstr("<td>misaligned-load</td><td>rogue</td><td>a</td>"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
}

TEST(ParkedAct, WhatACheckerSaysIsHeard) {
  Neighbour heard;
  EXPECT_FALSE(hear_count("working", heard));
  EXPECT_FALSE(hear_count(R"({"launches": 3})", heard));
  EXPECT_FALSE(hear_count(R"({"launches": "x", "wrong_words": 0, "longest_ms": 1, "error": ""})", heard));
  EXPECT_FALSE(heard.has_counted);
  EXPECT_TRUE(hear_count(
      R"({"launches": 9, "wrong_words": 2, "longest_ms": 1.5, "longest_ended_ms": 3, "error": "e"})", heard));
  EXPECT_TRUE(heard.has_counted);
  EXPECT_EQ(heard.launches, 9u);
  EXPECT_EQ(heard.wrong_words, 2u);
  EXPECT_EQ(heard.error, "e");
}

}  // namespace
}  // namespace firebreak::demo
