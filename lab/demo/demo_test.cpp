// SPDX-License-Identifier: Apache-2.0
/// The demo's reading of what it observed. Playing it is tested in tests/demo.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demo/judge.h"
#include "demo/report.h"
#include "demo/table.h"
#include "demo/timeline.h"

namespace firebreak::demo {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t ms = 1'000'000;
constexpr os::ExitStatus good{0, 0}, gpu_error{3, 0}, killed{0, 9};

ProcessRecord process(const char* tenant, const char* role, os::ExitStatus exit) {
  return {tenant,
          role,
          1,
          0,
          2000 * ms,
          exit,
          {{1, 900 * ms}, {2, 950 * ms}},
          "decode: step 2: CUDA_ERROR_ILLEGAL_ADDRESS (700)"};
}

abi::Event event(const char* what, const char* tenant, std::int64_t at_ns, std::uint64_t step = 0) {
  abi::Event made;
  made.what = abi::event_kind(what);
  made.tenant = tenant;
  made.at_ns = at_ns;
  made.step = step;
  if (std::string(what) == "fault") made.domain = "a", made.source = "Xid";
  return made;
}

/// A play in which everything went as claimed.
Play perfect() {
  Play play{"soft", "trap", false, "2026-01-01", {}, {}};
  ActRecord reference{Act::Reference,
                      0,
                      3000 * ms,
                      {process("decode", "active", good)},
                      {},
                      {},
                      {{"decode", 7, 10, false}},
                      ""};
  ActRecord stock{Act::StockMps,
                  0,
                  3000 * ms,
                  {process("decode", "active", gpu_error), process("rogue", "rogue", gpu_error)},
                  {},
                  stage::FaultReport{1000 * ms, 1100 * ms, "CUDA_ERROR_LAUNCH_FAILED"},
                  {{"decode", {}, 0, false}},
                  ""};
  ActRecord ours = stock;
  ours.act = Act::Firebreak;
  ours.processes.push_back(process("decode", "standby", good));
  ours.outcomes = {{"decode", 7, 10, true}};
  ours.events = {event("fault", "", 1012 * ms), event("promote", "decode", 1013 * ms, 5),
                 event("resumed", "decode", 1015 * ms, 5)};
  play.acts = {reference, stock, ours};
  play.recoveries = recoveries_of(play.acts.back());
  return play;
}

std::string verdict(const Play& play) { return render_verdict(judge(play)); }

TEST(DemoJudge, APerfectPlayIsObserved) { EXPECT_TRUE(all_observed(judge(perfect()))) << verdict(perfect()); }

TEST(DemoJudge, ASurvivorUnderStockMpsIsNotWhatIsClaimed) {
  Play play = perfect();
  play.acts[1].processes[0].exit = good;
  EXPECT_THAT(verdict(play), HasSubstr("NOT OBSERVED: decode's active process dies"));
}

TEST(DemoJudge, ADifferentOutputIsSaid) {
  Play play = perfect();
  play.acts[2].outcomes[0].same_as_reference = false;
  EXPECT_THAT(verdict(play), HasSubstr("byte for byte the reference - it differs"));
}

TEST(DemoJudge, AMissingActIsSaid) {
  Play play = perfect();
  play.acts.pop_back();
  EXPECT_THAT(verdict(play), HasSubstr("three acts are played - 2 were"));
}

TEST(DemoJudge, AnEmptyReferenceProvesNothing) {
  Play play = perfect();
  play.acts[0].outcomes[0].output_bytes = 0;
  EXPECT_FALSE(all_observed(judge(play)));
}

TEST(DemoJudge, ALostCommitIsSaid) {
  Play play = perfect();
  play.acts[2].events[2].step = 4;
  play.recoveries = recoveries_of(play.acts[2]);
  EXPECT_THAT(verdict(play), HasSubstr("decode loses no committed step - 1 lost"));
}

TEST(DemoRecovery, CountsFromTheFaultingLaunch) {
  const std::vector<Recovery> recoveries = recoveries_of(perfect().acts.back());
  ASSERT_EQ(recoveries.size(), 1u);
  EXPECT_DOUBLE_EQ(recoveries[0].detected_ms, 12);
  EXPECT_DOUBLE_EQ(recoveries[0].promoted_ms, 13);
  EXPECT_DOUBLE_EQ(recoveries[0].resumed_ms, 15);
  EXPECT_EQ(recoveries[0].detected_by, "Xid");
}

TEST(DemoRecovery, TheRoguesOwnEndIsASignToo) {
  ActRecord act = perfect().acts.back();
  act.events[0] = event("exited", "rogue", 1001 * ms);
  EXPECT_EQ(recoveries_of(act)[0].detected_by, "process exit");
}

TEST(DemoRecovery, WithoutAPromotionThereIsNone) {
  ActRecord act = perfect().acts.back();
  act.events.erase(act.events.begin() + 1);
  EXPECT_TRUE(recoveries_of(act).empty());
}

TEST(DemoTable, ShowsFatesAndOutputsOfEveryAct) {
  const std::string table = render_table(perfect());
  EXPECT_THAT(table, HasSubstr("died: ILLEGAL_ADDRESS"));
  EXPECT_THAT(table, HasSubstr("took over, finished"));
  EXPECT_THAT(table, HasSubstr("0000000000000007 = act 1"));
}

TEST(DemoTimeline, MarksFaultPromotionFirstKernelAndDeath) {
  const Timeline timeline = timeline_of(perfect().acts.back());
  std::string letters;
  for (const Lane& lane : timeline.lanes) {
    for (const Mark& mark : lane.marks) letters += mark.letter;
  }
  EXPECT_EQ(letters, "X!XPK");
  EXPECT_DOUBLE_EQ(timeline.begin_ms, -100);
  EXPECT_DOUBLE_EQ(timeline.end_ms, 1000);
}

TEST(DemoReport, ThePageNeedsNothingElseAndEscapesWhatItQuotes) {
  Play play = perfect();
  play.acts[2].processes[0].last_words = "<script>alert(1)</script>";
  const std::string page = to_html(play, judge(play));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(DemoReport, ThePageSaysPassOrFailFirst) {
  Play play = perfect();
  const std::string passed = to_html(play, judge(play));
  EXPECT_THAT(passed, HasSubstr("Passed: all "));
  EXPECT_LT(passed.find("Passed: all "), passed.find("<pre"));
  play.acts[2].outcomes[0].same_as_reference = false;
  const auto checks = judge(play);
  const std::string failed = to_html(play, checks);
  EXPECT_THAT(failed, HasSubstr(fmt::format("Failed: 1 of {} claims", checks.size())));
  EXPECT_LT(failed.find(" - not observed: "), failed.find("<pre")) << "and which";
}

/// On a narrow screen. How it looks there is tested in tests/demo, where there is a browser.
TEST(DemoReport, WhatIsWideOnThePageScrollsByItself) {
  const std::string page = to_html(perfect(), judge(perfect()));
  EXPECT_THAT(page, HasSubstr("<meta name='viewport' content='width=device-width'>"));
  for (const std::string wide : {"<table", "<svg"}) {
    ASSERT_THAT(page, HasSubstr(wide));
    for (std::size_t at = page.find(wide); at != std::string::npos; at = page.find(wide, at + 1))
      EXPECT_TRUE(page.substr(0, at).ends_with("<div class='scrolls' tabindex='0'>")) << page.substr(at, 80);
  }
}

TEST(DemoReport, TheJsonHasTheFigures) {
  const std::string json = to_json(perfect(), judge(perfect()));
  EXPECT_THAT(json, HasSubstr("\"fault_to_first_kernel_ms\": 15.0"));
  EXPECT_THAT(json, HasSubstr("\"all_observed\": true"));
}

TEST(DemoJudge, AKindThatSparesOthersIsExpectedToDoSo) {
  Play play = perfect();
  play.spares_co_clients = true;
  EXPECT_THAT(verdict(play), HasSubstr("NOT OBSERVED: decode's active process finishes"));
  for (std::size_t act : {1u, 2u}) {
    play.acts[act].processes[0].exit = good;
    play.acts[act].outcomes[0] = {"decode", 7, 10, true};
  }
  EXPECT_TRUE(all_observed(judge(play))) << verdict(play);
}

TEST(DemoJudge, AKilledRogueCountsAsDead) {
  Play play = perfect();
  play.acts[1].processes[1].exit = killed;
  EXPECT_TRUE(all_observed(judge(play)));
}

}  // namespace
}  // namespace firebreak::demo
