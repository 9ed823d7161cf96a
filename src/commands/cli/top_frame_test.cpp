// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace firebreak::cli {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr os::TerminalSize large{200, 50};

nlohmann::json status() {
  return nlohmann::json::parse(R"({
    "version": "0.6.0",
    "counts": {"faults": {"sm": {"failed_over": 2, "lost": 0}, "termination": {"failed_over": 1, "contained": 4}}},
    "domains": [{"name": "a", "state": "draining", "gpu": "GPU-1", "clients": [1, 2], "foreign": [{"pid": 3}],
                 "parking": {"state": "held"}, "daemon_restarts": 1, "server_restarts": 2, "news": "a fault"},
                {"name": "b", "state": "serving", "gpu": "", "clients": [], "parking": null}],
    "tenants": [{"name": "llm", "phase": "serving", "standby_state": "ready", "committed_steps": 40,
                 "memory_bytes": 3145728, "active": {"pid": 7, "domain": "a", "sm_percent": 50},
                 "guard": {"strays": 6}, "turn": {"state": "waits", "class": "batch", "waits_ms": 80}},
                {"name": "other", "phase": "lost", "standby_state": "none", "committed_steps": 5, "active": null}]})");
}

std::vector<std::string> frame(const nlohmann::json& now, os::TerminalSize size = large) {
  return top_frame({now.dump(), {}}, std::nullopt, size);
}

TEST(TopFrame, ShowsDomainsTenantsAndWhatFaultsCameTo) {
  const auto lines = frame(status());
  EXPECT_EQ(lines[0], "firebreak 0.6.0   faults: 7 (4 contained, 3 failed_over)");
  EXPECT_EQ(lines[2], "DOMAIN  STATE     PARKING  GPU        CLIENTS  RESTARTS            LAST NEWS");
  EXPECT_EQ(lines[3], "a       draining  held     GPU-1      3        daemon 1, server 2  a fault");
  EXPECT_EQ(lines[4], "b       serving   -        (default)  0        none                -");
  EXPECT_EQ(lines[6], "TENANT  PHASE    STANDBY  DOMAIN  SMS   VAULT  STRAYS  TURN         STEPS  STEPS/S");
  EXPECT_EQ(lines[7], "llm     serving  ready    a       50 %  3 MiB  6       waits 80 ms  40     -");
  EXPECT_EQ(lines[8], "other   lost     none     -       -     -      0       -            5      -");
}

TEST(TopFrame, StepsASecondAreThoseSinceThePictureBefore) {
  nlohmann::json later = status();
  later["tenants"][0]["committed_steps"] = 43;
  const StatusMoment before{status().dump(), from_ns(0)};
  const StatusMoment now{later.dump(), from_ns(2'000'000'000)};
  const auto lines = top_frame(now, before, large);
  EXPECT_THAT(lines[7], testing::EndsWith("43     1.5"));
  EXPECT_THAT(lines[8], testing::EndsWith("5      0.0"));
}

TEST(TopFrame, WhoIsNewOrHasBegunAnewHasNoSpeedYet) {
  nlohmann::json later = status();
  later["tenants"][0]["committed_steps"] = 3;
  later["tenants"][1]["name"] = "new";
  const auto lines =
      top_frame({later.dump(), from_ns(1'000'000'000)}, StatusMoment{status().dump(), from_ns(0)}, large);
  EXPECT_THAT(lines[7], testing::EndsWith("3      -"));
  EXPECT_THAT(lines[8], testing::EndsWith("5      -"));
  const auto at_once =
      top_frame({status().dump(), from_ns(0)}, StatusMoment{status().dump(), from_ns(0)}, large);
  EXPECT_THAT(at_once[7], testing::EndsWith("40     -"));
}

TEST(TopFrame, FitsTheTerminal) {
  const auto lines = frame(status(), {20, 4});
  EXPECT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines, Each(testing::Property(&std::string::size, testing::Le(20u))));
  EXPECT_EQ(lines[3], "... and 6 lines more");
  nlohmann::json wide = status();
  wide["version"] = "\u00e9\u00e9\u00e9";
  EXPECT_EQ(frame(wide, {11, 50})[0], "firebreak ?") << "a byte is a column";
}

TEST(TopFrame, NothingOfTheStatusMovesTheTerminal) {
  nlohmann::json hostile = status();
  hostile["tenants"][0]["name"] = "x\x1b[2J\ny";
  hostile["domains"][0]["news"] = "\x7f\r";
  hostile["version"] = "\x1b]0;title\x07";
  const auto lines = frame(hostile);
  EXPECT_THAT(lines, SizeIs(9));
  for (const std::string& line : lines) {
    for (const unsigned char byte : line) EXPECT_TRUE(byte >= 0x20 && byte != 0x7f) << line;
  }
  EXPECT_THAT(lines[7], HasSubstr("x?[2J?y"));
}

TEST(TopFrame, ATenantIsToldNoCounts) {
  nlohmann::json of_tenant = status();
  of_tenant.erase("counts");
  EXPECT_THAT(frame(of_tenant)[0], HasSubstr("faults: counted for operators and observers"));
}

TEST(TopFrame, WhatIsNoStatusIsAnEmptyOne) {
  for (const char* odd :
       {"", "[]", "7", "{", R"({"domains": 7, "tenants": [7, null], "counts": []})",
        R"({"tenants": [{"name": 7, "committed_steps": "x", "active": 3, "guard": []}]})"}) {
    const auto lines = top_frame({odd, {}}, StatusMoment{odd, {}}, large);
    EXPECT_THAT(lines, Contains(HasSubstr("DOMAIN"))) << odd;
    EXPECT_THAT(lines, Contains(HasSubstr("TENANT"))) << odd;
    EXPECT_THAT(lines, Not(Contains(HasSubstr("GPU-1")))) << odd;
  }
}

}  // namespace
}  // namespace firebreak::cli
