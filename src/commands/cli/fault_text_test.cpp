// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/fault_text.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace firebreak::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string at(std::int64_t at_ns) { return "t" + std::to_string(at_ns); }

const char* const faults_of_agent = R"([
  {"id": "1mjnajx", "at": "2025-11-29T08:10:05Z", "at_ns": 7, "class": "sm", "outcome": "failed_over",
   "domain": "a", "culprit": "rogue", "what": "Xid 13", "xids": [13, 43], "reports": ["20251129T081005Z-rogue-9"],
   "saw": ["its dump names process 9"],
   "touched": [{"tenant": "llm", "became": "its standby goes on"}, {"tenant": "x", "became": "ended"}]},
  {"at_ns": 8, "class": "termination", "outcome": "contained", "domain": "", "culprit": "",
   "what": "killed\u001b[2J"}])";

TEST(FaultText, IsALineInColumnsForEach) {
  const json faults = json::parse(faults_of_agent);
  EXPECT_EQ(
      fault_head(),
      "ID       WHEN                  CLASS               OUTCOME      DOMAIN  CULPRIT           WHAT\n");
  EXPECT_EQ(
      fault_line(faults[0], at),
      "1mjnajx  2025-11-29T08:10:05Z  sm                  failed_over  a       rogue             Xid 13\n");
  EXPECT_EQ(fault_line(faults[1], at),
            "-        t8                    termination         contained    -       -                 "
            "killed?[2J\n")
      << "one of an agent that is older";
}

TEST(FaultText, IsALineForEachTenantThatHadSomethingOfIt) {
  const json faults = json::parse(faults_of_agent);
  EXPECT_EQ(fault_line_of(faults[0], "llm", at),
            "2025-11-29T08:10:05Z  1mjnajx  a neighbour (rogue) faulted: Xid 13; its standby goes on\n");
  EXPECT_EQ(fault_line_of(faults[0], "x", at),
            "2025-11-29T08:10:05Z  1mjnajx  a neighbour (rogue) faulted: Xid 13; ended\n");
  EXPECT_EQ(fault_line_of(faults[0], "rogue", at), "2025-11-29T08:10:05Z  1mjnajx  it faulted: Xid 13\n");
  EXPECT_EQ(fault_line_of(faults[0], "other", at), "");
  EXPECT_EQ(fault_line_of(json::parse(R"({"touched": [1, {}, {"tenant": "llm"}]})"), "llm", at),
            "-  -        a neighbour (nobody is named) faulted: -; -\n");
}

TEST(FaultText, FindsAFaultByItsWholeId) {
  const json faults = json::parse(faults_of_agent);
  EXPECT_EQ(find_fault(faults, "1mjnajx"), &faults[0]);
  EXPECT_EQ(find_fault(faults, "1mjnaj"), nullptr);
  EXPECT_EQ(find_fault(faults, ""), nullptr) << "one of an agent that is older has none";
}

TEST(FaultText, TellsWhoDidItWhomItTouchedWhatWasSeenAndWhatToDo) {
  const json faults = json::parse(faults_of_agent);
  const std::string text = fault_account(faults[0], at);
  EXPECT_THAT(text, HasSubstr("fault 1mjnajx\n  when         2025-11-29T08:10:05Z\n"));
  EXPECT_THAT(text, HasSubstr("culprit      rogue\n"));
  EXPECT_THAT(text, HasSubstr("  Xid 13       "));
  EXPECT_THAT(text, HasSubstr("NVIDIA's next step: RESTART_APP\n"));
  EXPECT_THAT(text, HasSubstr("    llm: its standby goes on\n    x: ended\n"));
  EXPECT_THAT(text, HasSubstr("  what was seen\n    its dump names process 9\n"));
  const std::string other = fault_account(faults[1], at);
  EXPECT_THAT(other, HasSubstr("nobody is named"));
  EXPECT_THAT(other, HasSubstr("no other tenant was there"));
  EXPECT_THAT(other, Not(HasSubstr("\x1b")));
}

// Whatever the agent says, this ends with some text.
TEST(FaultText, OfAnotherFormIsNoMisfortune) {
  for (const char* odd : {R"({})", R"({"xids": 3, "touched": [1, {}], "saw": [2], "at_ns": "x"})"}) {
    EXPECT_THAT(fault_line(json::parse(odd), at), HasSubstr("-"));
    EXPECT_THAT(fault_account(json::parse(odd), at), HasSubstr("fault -"));
  }
}

TEST(FaultText, OfAProcessInADomainOfTheAgentIsTheAgents) {
  const json status = json::parse(R"({"domains": [{"name": "a", "clients": [7]},
      {"name": "b", "clients": [], "foreign": [{"pid": 8}]}, 3, {"clients": 9, "foreign": [9]}]})");
  EXPECT_TRUE(is_known_in(status, 7));
  EXPECT_TRUE(is_known_in(status, 8));
  EXPECT_FALSE(is_known_in(status, 9));
  EXPECT_FALSE(is_known_in(json(7), 7));
}

TEST(FaultNews, AreEachFaultOnceAlsoWhereOldOnesFallOutOfTheList) {
  FaultNews news;
  json faults = json::parse(faults_of_agent);
  EXPECT_EQ(news.in(faults).size(), 2u);
  EXPECT_THAT(news.in(faults), IsEmpty());
  faults.erase(0);
  faults.push_back({{"id", "1mjnak0"}, {"at_ns", 9}});
  EXPECT_THAT(news.in(faults), ElementsAre(faults[1]));
  EXPECT_THAT(news.in(json::parse(R"([7])")), IsEmpty());
  EXPECT_THAT(news.in(json(7)), IsEmpty());
}

}  // namespace
}  // namespace firebreak::cli
