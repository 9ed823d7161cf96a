// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/status_text.h"

#include <gmock/gmock.h>

namespace firebreak::cli {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(StatusText, ShowsDomainsAndTenantsWithTheirLimits) {
  const char* const json = R"({"domains": [
      {"name": "a", "state": "draining", "gpu": "", "daemon_pid": 12, "server_pids": [34], "clients": [56, 78],
       "daemon_restarts": 0, "server_restarts": 2, "news": "had a fault"},
      {"name": "b", "state": "serving", "gpu": "GPU-1", "daemon_pid": 13, "server_pids": [], "clients": [],
       "daemon_restarts": 1, "server_restarts": 0, "news": "", "parking": {"state": "halted"}},
      {"name": "c", "state": "serving", "gpu": "GPU-1", "daemon_pid": 14, "server_pids": [], "clients": [],
       "daemon_restarts": 0, "server_restarts": 0, "news": "",
       "parking": {"state": "ready", "prevented": true}}],
    "tenants": [
      {"name": "llm", "phase": "serving", "guard": {"state": "on"},
       "active": {"pid": 56, "domain": "a", "sm_percent": 25, "memory_mib": 1024}, "standby": null,
       "turn": {"state": "waits", "class": "batch", "waits_ms": 120},
       "spare": {"state": "protected", "reason": "", "domain": "b", "moves": 2, "gpu_memory_mib": 585}},
      {"name": "x", "phase": "empty", "active": {"pid": 78, "domain": "a", "sm_percent": null,
       "memory_mib": null}, "standby": {"pid": 9, "domain": "b"}, "standby_state": "ready", "spare": null,
       "turn": {"state": "goes", "class": "live", "waits_ms": 0}},
      {"name": "two", "phase": "empty", "active": {"pid": 81, "domain": "b", "sm_percent": null,
       "memory_mib": null}, "standby": null,
       "turn": {"state": "never asks", "class": "batch", "waits_ms": 0},
       "spare": {"state": "protected", "reason": "", "domain": "a", "moves": 0}},
      {"name": "odd", "phase": "empty", "active": {"pid": 82, "domain": "c", "sm_percent": null,
       "memory_mib": null}, "standby": null, "spare": null},
      {"name": "torch", "phase": "empty", "active": {"pid": 80, "domain": "b", "sm_percent": null,
       "memory_mib": null}, "standby": null,
       "spare": {"state": "unprotected", "reason": "it captures", "domain": "", "moves": 0}}],
    "holds": [{"pid": 56, "tenant": "llm", "state": "ready", "since_death_ms": null},
      {"pid": 7, "tenant": "gone", "state": "waiting", "since_death_ms": 1204}]})";
  EXPECT_EQ(
      status_text(json),
      "DOMAIN  STATE     GPU        DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n"
      "a       draining  (default)  12      34       56,78    server 2  had a fault\n"
      "b       serving   GPU-1      13      -        -        daemon 1  -\n"
      "c       serving   GPU-1      14      -        -        none      -\n"
      "\n"
      "TENANT  STATE    ACTIVE   STANDBY  LIMITS                     GUARD  SPARE      "
      "               PROTECTED  NOT AGAINST                                                      TURN\n"
      "llm     running  56 in a  -        25 % of the SMs, 1024 MiB  on     in b, 585 M"
      "iB             yes        faults while its kernels run                                     batch, "
      "waits 120 ms\n"
      "x       running  78 in a  9 in b   none                       -      -          "
      "               yes        a broken GPU                                                     live, "
      "goes\n"
      "two     running  81 in b  -        none                       -      in a       "
      "               yes        memory faults while its kernels run                              never "
      "asks\n"
      "odd     running  82 in c  -        none                       -      -          "
      "               no         any fault                                                        -\n"
      "torch   running  80 in b  -        none                       -      unprotected"
      ": it captures  no         any fault: it goes on after an exception, until its domain ends  -\n"
      "\n"
      "DEAD  TENANT  ITS LAST KERNELS       SINCE\n"
      "7     gone    are given time to end  1204 ms");
}

// A tenant that has no process is in no danger, and one whose pair is done is neither.
TEST(StatusText, SaysInWordsWhatATenantDoes) {
  const auto tenant = [](const std::string& phase, const std::string& active) {
    return R"({"domains": [], "tenants": [{"name": "t", "phase": ")" + phase + R"(", "active": )" + active +
           R"(, "standby": null, "spare": null}]})";
  };
  const std::string active = R"({"pid": 5, "domain": "a", "sm_percent": null, "memory_mib": null})";
  const auto line = [&](const std::string& phase, const std::string& its_active) {
    const std::string text = status_text(tenant(phase, its_active));
    return text.substr(text.rfind('\n') + 1);
  };
  EXPECT_THAT(line("finished", "null"), MatchesRegex("t +finished +- +- +- +- +- +- +- +-"));
  EXPECT_THAT(line("empty", "null"), HasSubstr("waits for its active"));
  EXPECT_THAT(line("empty", active), HasSubstr("t       running  5 in a"));
  EXPECT_THAT(line("orphaned", active), HasSubstr("its active has ended"));
  EXPECT_THAT(line("promoting", active), HasSubstr("its standby takes over"));
}

TEST(StatusText, ATenantThatRestsIsNotRunningAndIsInNoDangerWithoutADriver) {
  const auto line = [](const std::string& phase, const std::string& rest, const std::string& state) {
    const std::string text =
        status_text(R"({"domains": [], "tenants": [{"name": "t", "phase": ")" + phase +
                    R"(", "active": {"pid": 5, "domain": "a"}, "standby": null, "spare": {"state": ")" +
                    state + R"(", "reason": "it rests", "domain": "", "rest": ")" + rest +
                    R"(", "rest_host_bytes": 7340032}}]})");
    return text.substr(text.rfind('\n') + 1);
  };
  for (const char* const phase : {"empty", "serving"}) {
    EXPECT_THAT(
        line(phase, "without memory", "unprotected"),
        MatchesRegex("t +rests +5 in a .* rests, without memory: 7 MiB in the host's memory +yes +- +-"));
    EXPECT_THAT(line(phase, "without contexts", "unprotected"),
                MatchesRegex("t +rests +5 in a .* rests, without contexts: .* +yes +- +-"));
    EXPECT_THAT(line(phase, "still", "protected"),
                MatchesRegex("t +rests +5 in a .* rests, still: .* +yes +faults while its kernels run +-"));
    EXPECT_THAT(line(phase, "awake", "unprotected"), MatchesRegex("t +running +5 in a .* +no +any fault +-"));
  }
  EXPECT_THAT(line("suspecting", "still", "protected"), HasSubstr("may have had a fault"));
}

TEST(StatusText, SaysThatNobodyIsThere) {
  EXPECT_EQ(status_text(R"({"domains": [], "tenants": []})"),
            "DOMAIN  STATE  GPU  DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n\nno tenants");
}

TEST(StatusText, ShowsClientsThatNobodyHasPlaced) {
  EXPECT_EQ(status_text(R"({"domains": [{"name": "a", "state": "serving", "gpu": "", "daemon_pid": 1,
       "server_pids": [2], "clients": [], "daemon_restarts": 0, "server_restarts": 0, "news": "",
       "foreign": [{"pid": 77, "name": "python3", "uid": "1000", "came": "not placed by us"}]}],
      "tenants": []})"),
            "DOMAIN  STATE    GPU        DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n"
            "a       serving  (default)  1       2        -        none      -\n"
            "\nno tenants\n\n"
            "FOREIGN  NAME     USER  DOMAIN  HOW IT CAME\n"
            "77       python3  1000  a       not placed by us");
}

TEST(StatusText, ShowsMemoryThatTenantsShare) {
  EXPECT_EQ(status_text(R"({"domains": [], "tenants": [], "shared": [
       {"owner": "maker", "user": 0, "bytes": 4194304, "allocations": 2, "is_shared": true,
        "tenants": ["one", "two"]},
       {"owner": "old", "user": 0, "bytes": 2097152, "allocations": 1, "is_shared": false, "tenants": []}]})"),
            "DOMAIN  STATE  GPU  DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n\nno tenants\n\n"
            "MADE BY  MEMORY  ALLOCATIONS  SHARED   TENANTS\n"
            "maker    4 MiB   2            yes      one,two\n"
            "old      2 MiB   1            not yet  nobody");
}

TEST(StatusText, ShowsTheDomainForAnchors) {
  EXPECT_EQ(status_text(R"({"domains": [], "anchors": [{"name": "anchor", "state": "restarting", "gpu": "",
       "daemon_pid": 1, "server_pids": [2], "clients": [], "daemon_restarts": 0, "server_restarts": 3,
       "news": "n"}], "tenants": []})"),
            "DOMAIN  STATE       GPU        DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n"
            "anchor  restarting  (default)  1       2        -        server 3  n\n"
            "\nno tenants");
}

TEST(StatusText, WhoLivesIsNotAmongTheDead) {
  EXPECT_EQ(status_text(R"({"domains": [], "tenants": [], "holds": [
       {"pid": 7, "tenant": "llm", "state": "given back", "since_death_ms": 5},
       {"pid": 8, "tenant": "llm", "state": "ready"},
       {"pid": 6, "tenant": "llm", "state": "ended", "since_death_ms": 5},
       {"pid": 9, "tenant": "old", "state": "running", "since_death_ms": 5}]})"),
            "DOMAIN  STATE  GPU  DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n\nno tenants\n\n"
            "DEAD  TENANT  ITS LAST KERNELS  SINCE\n"
            "9     old     are known to run  5 ms");
}

TEST(StatusText, SaysWhatIsNotHeard) {
  EXPECT_EQ(status_text(R"({"domains": [], "tenants": [], "not_heard": ["not heard: kmsg: gone"]})"),
            "DOMAIN  STATE  GPU  DAEMON  SERVERS  CLIENTS  RESTARTS  LAST NEWS\n\nno tenants\n\n"
            "not heard: kmsg: gone");
}

TEST(StatusText, WhatItDoesNotUnderstandItGivesBack) { EXPECT_EQ(status_text("[1"), "[1"); }

}  // namespace
}  // namespace firebreak::cli
