// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace firebreak::watch {
namespace {

using testing::HasSubstr;

fault::Incident example() {
  fault::Fault first;
  first.kind = "fatal fault: store";
  first.source = fault::FaultSource::UvmEvent;
  first.when = from_ns(1'000'000);
  first.pid = 4711;
  fault::Fault second;
  second.kind = "Xid 31";
  second.xid = 31;
  second.when = from_ns(93'500'000);
  fault::Incident incident;
  incident.id = 7;
  incident.fault_class = fault::FaultClass::MmuReplayable;
  incident.kind = first.kind;
  incident.domain = "/run/a";
  incident.address = 0xffff'7000'dead'0000;
  incident.xids = {31};
  incident.culprit = {fault::Confidence::Certain, 4711, "rogue", {"UVM's queue says so", "and the log"}};
  incident.signals = {first, second};
  return incident;
}

TEST(IncidentNews, ClassCulpritAndTheEndAreNews) {
  IncidentNews news;
  fault::Incident incident = example();
  incident.culprit = {};
  EXPECT_EQ(news.of(incident), Change::New);
  incident.xids.push_back(43);
  EXPECT_EQ(news.of(incident), std::nullopt);
  incident.culprit.confidence = fault::Confidence::Probable;
  incident.culprit.pid = 4711;
  EXPECT_EQ(news.of(incident), Change::Changed);
  EXPECT_EQ(news.of(incident), std::nullopt);
  incident.fault_class = fault::FaultClass::Sm;
  EXPECT_EQ(news.of(incident), Change::Changed);
  incident.closed = true;
  EXPECT_EQ(news.of(incident), Change::Closed);
}

TEST(IncidentNews, ThatItWasContainedIsNews) {
  IncidentNews news;
  fault::Incident incident = example();
  incident.xids.clear();
  EXPECT_EQ(news.of(incident), Change::New);
  incident.signals.front().contained = true;
  EXPECT_EQ(news.of(incident), Change::Changed);
  EXPECT_TRUE(nlohmann::json::parse(json_of(incident, Change::New))["contained"].get<bool>());
  // Somebody else's reset after all.
  incident.xids.push_back(31);
  EXPECT_EQ(news.of(incident), Change::Changed);
  EXPECT_FALSE(nlohmann::json::parse(json_of(incident, Change::New))["contained"].get<bool>());
}

TEST(Report, AnIncidentIsOneLineForPeople) {
  EXPECT_EQ(
      text_of(example(), Change::New),
      "incident 7: MMU (replayable), fatal fault: store, address 0xffff7000dead0000, Xid 31, MPS domain "
      "/run/a, first seen by UVM event, 2 signals in 92.5 ms; culprit process 4711 (rogue), certain: UVM's "
      "queue says so; and the log");
  fault::Incident unknown;
  unknown.kind = "Xid 13";
  unknown.id = 8;
  EXPECT_EQ(text_of(unknown, Change::Closed), "incident 8 closed: unknown class, Xid 13; culprit unknown");
  EXPECT_EQ(text_of(unknown, Change::New, "1mjnajx"),
            "incident 1mjnajx: unknown class, Xid 13; culprit unknown");
}

TEST(Report, AnIncidentIsOneJsonObject) {
  const std::string line = json_of(example(), Change::Changed);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["event"], "incident");
  EXPECT_EQ(json["id"], 7);
  EXPECT_EQ(json["change"], "changed");
  EXPECT_EQ(json["class"], "MMU (replayable)");
  EXPECT_EQ(json["address"], "0xffff7000dead0000");
  EXPECT_EQ(json["xids"], nlohmann::json({31}));
  EXPECT_EQ(json["culprit"]["pid"], 4711);
  EXPECT_EQ(json["culprit"]["name"], "rogue");
  EXPECT_EQ(json["culprit"]["confidence"], "certain");
  ASSERT_EQ(json["signals"].size(), 2u);
  EXPECT_EQ(json["signals"][1]["after_ms"], 92.5);
  EXPECT_TRUE(json["signals"][0]["xid"].is_null());
}

TEST(Report, NamesThatAreNoTextMakeNoInvalidJson) {
  const auto json = nlohmann::json::parse(json_of(GpuProcess{5, "a\xff\"b\n", ""}, {}), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["pid"], 5);
  EXPECT_EQ(json["followed"], true);
}

TEST(Report, WhatIsNotHeardIsSaidWithTheReason) {
  SourceState source{
      fault::FaultSource::Xid, Error{ErrorCode::PermissionDenied, "no kernel log", "be root"}, {}};
  EXPECT_EQ(text_of(source), "not heard: kmsg: no kernel log (be root)");
  EXPECT_EQ(nlohmann::json::parse(json_of(source))["heard"], false);
  source.missing.reset();
  source.remark = "up to 4 ms late";
  EXPECT_EQ(text_of(source), "heard: kmsg (up to 4 ms late)");
  const Status refused = fail(ErrorCode::PermissionDenied, "not ours");
  EXPECT_THAT(text_of(GpuProcess{5, "x", "/run/a"}, refused), HasSubstr("cannot follow process 5 (x)"));
  EXPECT_THAT(text_of(MpsServer{6, "/run/a", "/log"}, {}),
              HasSubstr("MPS server 6, MPS domain /run/a: its log"));
  EXPECT_EQ(nlohmann::json::parse(json_of(MpsServer{6, "/run/a", "/log"}, refused))["why_not"], "not ours");
}

}  // namespace
}  // namespace firebreak::watch
