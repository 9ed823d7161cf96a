// SPDX-License-Identifier: Apache-2.0
#include "characterize/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "characterize/example_results.h"
#include "inject/catalogue.h"

namespace firebreak::characterize {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Mismatches, AreNoneInARunAsExpected) {
  EXPECT_THAT(mismatches(example::run(), example::expected()), IsEmpty());
}

TEST(Mismatches, NameTheFaultersOtherError) {
  auto run = example::run();
  run.participants["faulter"].error = "CUDA_ERROR_LAUNCH_FAILED";
  EXPECT_THAT(mismatches(run, example::expected()),
              ElementsAre("the faulter saw CUDA_ERROR_LAUNCH_FAILED, expected CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST(Mismatches, NameWhoLivedAndShouldNotHave) {
  auto run = example::run();
  run.participants["co_client"] = {};
  EXPECT_THAT(mismatches(run, example::expected()),
              ElementsAre("the co-client lived, expected to die of CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST(Mismatches, NameWhoDiedAndShouldNotHave) {
  auto run = example::run();
  run.participants["other_domain"].end = "signal 9";
  run.participants["outside"].error = "CUDA_ERROR_UNKNOWN";
  EXPECT_THAT(mismatches(run, example::expected()),
              ElementsAre("the client of the other domain ended (signal 9), expected to live",
                          "the client without MPS died of CUDA_ERROR_UNKNOWN, expected to live"));
}

TEST(Mismatches, NameOtherXids) {
  auto run = example::run();
  run.signals.push_back({"xid", "Xid 43", 3.5, 43, ""});
  EXPECT_THAT(mismatches(run, example::expected()), ElementsAre("Xids 31, 43, expected 31"));
}

TEST(Mismatches, NameAnotherFirstSource) {
  auto run = example::run();
  run.signals.erase(run.signals.begin());
  EXPECT_THAT(mismatches(run, example::expected()), ElementsAre("first seen by xid, expected uvm_event"));
}

TEST(Mismatches, TakeWhatComesAlmostAtTheSameTimeForEquallyEarly) {
  auto run = example::run();
  const auto uvm = std::ranges::find(run.signals, "uvm_event", &Signal::source);
  uvm->after_ms = 7;  // the Xid came after 3
  EXPECT_THAT(mismatches(run, example::expected()), IsEmpty());
  uvm->after_ms = 9;
  EXPECT_THAT(mismatches(run, example::expected()), ElementsAre("first seen by xid, expected uvm_event"));
}

TEST(Mismatches, LetGuardRangesHearWhatTheHardwareLetsPass) {
  Expected harmless;
  harmless.kind = "prefetch";
  auto run = example::run("prefetch");
  run.signals = {{stray_source, "prefetch to 0xdead0000", 0.3, {}, "faulter"}};
  for (auto& [role, participant] : run.participants) participant = {};
  EXPECT_THAT(mismatches(run, harmless), IsEmpty());
  run.signals[0].source = "uvm_event";
  EXPECT_THAT(mismatches(run, harmless), ElementsAre("first seen by uvm_event, expected nobody"));
}

TEST(Mismatches, NameAWrongCulprit) {
  auto run = example::run();
  run.attribution.verdict = Verdict::Wrong;
  run.attribution.names = "co_client";
  EXPECT_THAT(mismatches(run, example::expected()), ElementsAre("the wrong culprit was named: co_client"));
}

TEST(Mismatches, AreNotLookedForInARunThatDoesNotCount) {
  auto run = example::run();
  run.participants.clear();
  run.problem = "no domain";
  EXPECT_THAT(mismatches(run, example::expected()), IsEmpty());
}

TEST(FirstSource, IgnoresTheErrorsInsideTheDomain) {
  auto run = example::run();
  run.participants["faulter"].error_ms = 0.2;
  run.participants["co_client"].error_ms = 0.1;
  EXPECT_EQ(first_source(run), "uvm_event");
  EXPECT_EQ(first_by_source(run).at(co_client_error_source), 0.1);
}

TEST(FirstSource, IsNotTheAnswerToAContainedAccess) {
  auto run = example::run();
  run.signals = {{stray_source, "store to 0x1000", 0.4, {}, "faulter"}};
  run.participants["faulter"].error_ms.reset();
  run.participants["faulter"].answered_ms = 0.3;
  EXPECT_EQ(first_source(run), stray_source);
  EXPECT_EQ(first_by_source(run).at(answer_source), 0.3);
}

TEST(Xids, CountOnceAndOnlyThoseOfTheKernelLog) {
  auto run = example::run();
  run.signals.push_back({"xid", "Xid 31", 4, 31, ""});
  run.signals.push_back({"nvml", "Xid 43", 5, 43, ""});
  EXPECT_THAT(xids_of(run), ElementsAre(31));
}

TEST(SeenAll, IsTrueOnceEverythingExpectedWasSeen) {
  EXPECT_TRUE(seen_all(example::run(), example::expected()));
}

TEST(SeenAll, WaitsForEachExpectedPart) {
  auto no_answer = example::run();
  no_answer.participants["faulter"] = {};
  EXPECT_FALSE(seen_all(no_answer, example::expected()));
  auto no_victim = example::run();
  no_victim.participants["co_client"] = {};
  EXPECT_FALSE(seen_all(no_victim, example::expected()));
  auto no_xid = example::run();
  no_xid.signals.pop_back();
  EXPECT_FALSE(seen_all(no_xid, example::expected()));
  auto no_first_source = example::run();
  no_first_source.signals.erase(no_first_source.signals.begin());
  EXPECT_FALSE(seen_all(no_first_source, example::expected()));
}

TEST(SeenAll, IsNeverTrueOfWhatTheHardwareLetsPass) {
  Expected harmless = example::expected();
  harmless.first_seen_by.clear();
  EXPECT_FALSE(seen_all(example::run(), harmless));
}

TEST(ExpectedUnderGuard, IsAnErrorOfNobodyWhereTheGuardRangesReach) {
  const auto name = [](CUresult) { return std::string("SOME_ERROR"); };
  const auto expected = [&](const char* kind, bool maps_page_zero) {
    return expected_under_guard(*inject::find(kind), name, maps_page_zero);
  };
  const Expected contained = expected("use-after-free", false);
  EXPECT_TRUE(contained.is_contained());
  EXPECT_TRUE(contained.is_fault());
  EXPECT_EQ(contained.faulter + contained.co_client + contained.outsider, "");
  EXPECT_THAT(contained.xids, IsEmpty());
  EXPECT_EQ(expected("null-load", false).co_client, "SOME_ERROR");
  EXPECT_TRUE(expected("null-load", true).is_contained());
  EXPECT_EQ(expected("bad-program-counter", true).first_seen_by, "uvm_event");
  EXPECT_FALSE(expected("trap", true).is_contained());
}

TEST(SeenAll, WaitsForTheAnswerToAContainedAccess) {
  Expected contained;
  contained.first_seen_by = stray_source;
  auto run = example::run();
  run.signals = {{stray_source, "store to 0x1000", 0.4, {}, "faulter"}};
  run.participants["faulter"] = {};
  EXPECT_FALSE(seen_all(run, contained));
  run.participants["faulter"].answered_ms = 0.3;
  EXPECT_TRUE(seen_all(run, contained));
}

TEST(ExpectedOf, TranslatesTheCatalogue) {
  const auto name = [](CUresult error) { return "error " + std::to_string(error); };
  for (const inject::Kind* kind : inject::catalogue()) {
    const Expected expected = expected_of(*kind, name);
    EXPECT_EQ(expected.kind, kind->name);
    EXPECT_EQ(expected.is_fault(), kind->expectation.first_seen_by.has_value()) << expected.kind;
    EXPECT_EQ(expected.co_client.empty(), kind->expectation.co_client == CUDA_SUCCESS) << expected.kind;
    EXPECT_EQ(expected.xids.size(), kind->expectation.xids.size()) << expected.kind;
    EXPECT_THAT(expected.co_client + " ", testing::AnyOf(" ", HasSubstr("error "))) << expected.kind;
  }
}

}  // namespace
}  // namespace firebreak::characterize
