// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ground/base/utc.h"

namespace firebreak::cluster {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* group = "/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3/c";
constexpr const char* pod_list =
    R"({"items": [{"metadata": {"namespace": "x", "name": "y", "uid": "0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3"}}]})";

/// A server that answers each call as it is told; time stands still but for advance().
class ReporterTest : public testing::Test {
 protected:
  Instant now{Monotonic(std::chrono::hours(10)),
              std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000))};
  Reporter reporter{"n1", std::chrono::seconds(30)};
  link::StatusView status;
  std::vector<std::string> calls;   ///< "GET /api/v1/nodes/n1"
  std::vector<std::string> bodies;  ///< bodies of the same calls
  std::vector<std::string> lines;
  /// keyed by a part of the call; the last answer stays
  std::map<std::string, std::vector<ApiAnswer>> answers;

  ReporterTest() {
    status.domains = {{"a", "GPU-1", "serving"}, {"b", "GPU-1", "serving"}};
    answers["GET /api/v1/nodes"] = {{200, R"({"kind": "Node"})"}};
    answers["GET /api/v1/pods"] = {{200, pod_list}};
    answers["/nodes/n1/status"] = {{200, "{}"}};
    answers["/events"] = {{201, "{}"}};
    answers["/pods/y/status"] = {{200, "{}"}};
  }
  void advance(Nanoseconds by) {
    now.monotonic += by;
    now.wall += std::chrono::duration_cast<std::chrono::system_clock::duration>(by);
  }
  ApiAnswer answer_to(const std::string& call) {
    for (auto& [part, its] : answers) {
      if (call.find(part) == std::string::npos) continue;
      ApiAnswer first = its.front();
      if (its.size() > 1) its.erase(its.begin());
      return first;
    }
    return {404, "{}"};
  }
  /// Hears what the agent says now, and does all that follows at once.
  void hear() {
    reporter.agent_said(status, now);
    send();
  }
  void send() {
    for (int i = 0; i < 100; ++i) {
      const auto call = reporter.next(now);
      if (!call) break;
      calls.push_back(call->method + " " + call->path);
      bodies.push_back(call->body);
      reporter.answered(answer_to(calls.back()), now);
    }
    for (std::string& line : reporter.take_lines()) lines.push_back(std::move(line));
  }
  void settle() {
    hear();
    calls.clear();
    bodies.clear();
    lines.clear();
  }
  void be_in(const std::string& state_of_a) {
    status.domains[0].state = state_of_a;
    hear();
  }
  void add_fault(const std::string& control_group = group) {
    status.faults.push_back({to_ns(now.monotonic), "sm", "lost", "a", "rogue", "trap", control_group});
  }
  std::size_t count(const std::string& part) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        calls, [&](const std::string& call) { return call.find(part) != std::string::npos; }));
  }
  json last_condition() const {
    for (auto at = bodies.rbegin(); at != bodies.rend(); ++at) {
      const json body = json::parse(*at, nullptr, false);
      if (body.is_object() && body.contains("status")) return body["status"]["conditions"][0];
    }
    return nullptr;
  }
};

TEST_F(ReporterTest, TheConditionIsThereBeforeTheFirstFaultAndIsToldOnce) {
  hear();
  hear();
  EXPECT_THAT(calls, ElementsAre("GET /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1/status"));
  EXPECT_EQ(last_condition()["status"], "False");
  EXPECT_THAT(lines, ElementsAre("node n1 has FirebreakDomainFault=False: each domain takes clients"));
}

TEST_F(ReporterTest, ItComesWithAFaultAndGoesWhenTheDomainServesAgain) {
  settle();
  const std::string before = in_utc(now.wall);
  advance(std::chrono::seconds(60));
  be_in("draining");
  EXPECT_EQ(last_condition()["status"], "True");
  EXPECT_EQ(last_condition()["lastTransitionTime"], in_utc(now.wall));
  EXPECT_NE(last_condition()["lastTransitionTime"], before);
  advance(std::chrono::seconds(1));
  be_in("restarting");
  EXPECT_EQ(last_condition()["message"], "domain a is restarting");
  EXPECT_EQ(last_condition()["lastTransitionTime"], in_utc(now.wall - std::chrono::seconds(1)))
      << "it is True as before";
  be_in("serving");
  EXPECT_EQ(last_condition()["status"], "False");
  EXPECT_THAT(calls, SizeIs(3)) << "each by one call";
}

TEST_F(ReporterTest, ItsTimeOutlivesThisProgram) {
  answers["GET /api/v1/nodes"] = {
      {200, R"({"kind": "Node", "status": {"conditions": [{"type": "FirebreakDomainFault",
      "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})"}};
  be_in("draining");
  EXPECT_EQ(last_condition()["lastTransitionTime"], "2020-01-01T00:00:00Z");
  be_in("serving");
  EXPECT_EQ(last_condition()["lastTransitionTime"], in_utc(now.wall));
}

TEST_F(ReporterTest, ANodeWhoseConditionIsRefusedIsReadAgain) {
  settle();
  answers["/nodes/n1/status"] = {{404, "{}"}, {200, "{}"}};
  answers["GET /api/v1/nodes"] = {
      {200, R"({"kind": "Node", "status": {"conditions": [{"type": "FirebreakDomainFault",
      "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})"}};
  be_in("draining");
  advance(Pause::first);
  hear();
  EXPECT_THAT(calls, ElementsAre("PATCH /api/v1/nodes/n1/status", "GET /api/v1/nodes/n1",
                                 "PATCH /api/v1/nodes/n1/status"));
  EXPECT_EQ(last_condition()["lastTransitionTime"], "2020-01-01T00:00:00Z") << "it may have been made anew";
}

TEST_F(ReporterTest, ItIsToldAgainAfterAWhile) {
  settle();
  advance(Reporter::condition_lasts);
  hear();
  hear();
  EXPECT_THAT(calls, ElementsAre("PATCH /api/v1/nodes/n1/status"));
  EXPECT_THAT(lines, IsEmpty()) << "which is no news";
}

TEST_F(ReporterTest, AnAgentThatStaysAwayLeavesItUnknown) {
  reporter.agent_is_away(now);
  send();
  EXPECT_THAT(calls, IsEmpty()) << "nothing is known, and what was told before stays";
  settle();
  advance(std::chrono::seconds(29));
  reporter.agent_is_away(now);
  send();
  EXPECT_THAT(calls, IsEmpty()) << "it may come again, as in an upgrade";
  advance(std::chrono::seconds(1));
  reporter.agent_is_away(now);
  send();
  EXPECT_EQ(last_condition()["status"], "Unknown");
  hear();
  EXPECT_EQ(last_condition()["status"], "False");
}

TEST_F(ReporterTest, AnAgentThatNeverComesLeavesItUnknown) {
  reporter.agent_is_away(now);
  advance(std::chrono::seconds(30));
  reporter.agent_is_away(now);
  send();
  EXPECT_EQ(last_condition()["status"], "Unknown");
}

TEST_F(ReporterTest, AFaultIsToldOfTheNodeAndOfThePodWhichIsAnnotated) {
  settle();
  add_fault();
  hear();
  hear();
  EXPECT_THAT(calls, ElementsAre("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1",
                                 "POST /api/v1/namespaces/default/events", "POST /api/v1/namespaces/x/events",
                                 "PATCH /api/v1/namespaces/x/pods/y/status"));
  EXPECT_THAT(
      lines,
      ElementsAre("told: trap (sm) in domain a, caused by pod x/y (tenant rogue): somebody else ended, too"));
}

TEST_F(ReporterTest, AFaultOfNoPodIsToldOfTheNodeAlone) {
  settle();
  add_fault("/system.slice/batch.service");
  hear();
  EXPECT_THAT(calls, ElementsAre("POST /api/v1/namespaces/default/events"));
}

TEST_F(ReporterTest, APodThatIsGoneIsNamedByItsUid) {
  settle();
  answers["GET /api/v1/pods"] = {{200, R"({"items": []})"}};
  add_fault();
  hear();
  EXPECT_EQ(count("/events"), 1u);
  EXPECT_THAT(bodies.back(), HasSubstr("the pod of uid 0a1b2c3d-"));
  EXPECT_EQ(count("PATCH"), 0u);
}

TEST_F(ReporterTest, WhatWasToldBeforeThisProgramBeganIsToldNoSecondTime) {
  add_fault();
  advance(std::chrono::minutes(5));
  answers["/events"] = {{409, R"({"message": "already exists"})"}};
  hear();
  EXPECT_EQ(count("/events"), 2u) << "the server knows, and not we";
  EXPECT_EQ(count("/pods/y/status"), 1u);
  EXPECT_THAT(lines, SizeIs(1)) << "of the condition: " << testing::PrintToString(lines);
  hear();
  EXPECT_EQ(count("/events"), 2u);
}

TEST_F(ReporterTest, AnEventWhoseAnswerWasLostIsALineAllTheSame) {
  settle();
  answers["/events"] = {{0, "it is gone"}, {409, "{}"}};
  add_fault();
  hear();
  advance(Pause::first);
  hear();
  EXPECT_THAT(lines, Contains(HasSubstr("told: trap")));
}

TEST_F(ReporterTest, AnOldFaultIsNotTold) {
  add_fault();
  advance(Reporter::fault_lasts + Milliseconds(1));
  hear();
  EXPECT_EQ(count("/events"), 0u);
}

TEST_F(ReporterTest, AFaultThatBecomesOldMeanwhileIsGivenUpInOneLine) {
  settle();
  answers["/events"] = {{500, "{}"}};
  add_fault();
  hear();
  advance(Reporter::fault_lasts + Milliseconds(1));
  answers["/events"] = {{201, "{}"}};
  hear();
  EXPECT_EQ(count("/events"), 1u);
  EXPECT_THAT(lines, Contains(HasSubstr("not told, and too old by now: trap")));
}

TEST_F(ReporterTest, AServerThatIsAwayIsAskedAgainLaterAndLater) {
  answers["GET /api/v1/nodes"] = {{0, "connection refused"}};
  add_fault();
  std::size_t asked = 0;
  for (const int pause_s : {1, 2, 4, 8, 16, 32, 60, 60}) {
    hear();
    EXPECT_EQ(calls.size(), ++asked) << pause_s;
    advance(std::chrono::seconds(pause_s) - Milliseconds(1));
    hear();
    EXPECT_EQ(calls.size(), asked) << "not before " << pause_s << " s";
    advance(Milliseconds(1));
  }
  EXPECT_THAT(lines,
              ElementsAre("the API server cannot be told of faults, and is asked again: connection refused"));
  answers["GET /api/v1/nodes"] = {{200, R"({"kind": "Node"})"}};
  hear();
  EXPECT_EQ(count("/events"), 2u);
  EXPECT_THAT(lines, Contains("the API server answers"));
  answers["/nodes/n1/status"] = {{503, ""}, {200, "{}"}};
  be_in("draining");
  advance(Pause::first);
  hear();
  EXPECT_EQ(last_condition()["status"], "True") << "and the pause begins anew";
}

TEST_F(ReporterTest, WhatTheServerSaysOfWaitingIsDoneWithinBounds) {
  settle();
  answers["/nodes/n1/status"] = {
      {429, "{}", std::chrono::seconds(20)}, {429, "{}", std::chrono::hours(9)}, {200, "{}"}};
  be_in("draining");
  advance(std::chrono::seconds(19));
  hear();
  EXPECT_THAT(calls, SizeIs(1));
  advance(std::chrono::seconds(1));
  hear();
  EXPECT_THAT(calls, SizeIs(2));
  advance(std::chrono::minutes(5));
  hear();
  EXPECT_THAT(calls, SizeIs(3));
}

TEST_F(ReporterTest, ATokenThatIsRefusedIsOneLineAndTriedAgain) {
  settle();
  answers["/nodes/n1/status"] = {
      {401, R"({"message": "Unauthorized"})"}, {401, R"({"message": "Unauthorized"})"}, {200, "{}"}};
  be_in("draining");
  advance(std::chrono::seconds(1));
  hear();
  advance(std::chrono::seconds(2));
  hear();
  EXPECT_THAT(calls, SizeIs(3));
  EXPECT_THAT(
      lines,
      ElementsAre("the API server cannot be told of faults, and is asked again: HTTP 401: Unauthorized",
                  "the API server answers", "node n1 has FirebreakDomainFault=True: domain a is draining"));
}

/// Answers that one call may get: none of them is to keep the others from being told.
class OneCallRefused : public ReporterTest, public testing::WithParamInterface<int> {};

TEST_P(OneCallRefused, OfTheConditionIsNoneOfFaults) {
  settle();
  answers["/nodes/n1/status"] = {{GetParam(), "{}"}};
  add_fault();
  be_in("draining");
  EXPECT_EQ(count("/events"), 2u);
  EXPECT_EQ(count("/pods/y/status"), 1u);
  advance(Pause::first);
  answers["/nodes/n1/status"] = {{200, "{}"}};
  hear();
  EXPECT_EQ(last_condition()["status"], "True");
}

TEST_P(OneCallRefused, OfAnEventIsNoneOfTheCondition) {
  settle();
  answers["/events"] = {{GetParam(), "{}"}};
  add_fault();
  hear();
  be_in("draining");
  EXPECT_EQ(last_condition()["status"], "True");
  EXPECT_EQ(count("/events"), 1u);
  advance(Pause::first);
  answers["/events"] = {{201, "{}"}};
  hear();
  EXPECT_EQ(count("/events"), 3u);
  EXPECT_EQ(count("/pods/y/status"), 1u);
}

TEST_P(OneCallRefused, OfOneFaultIsNoneOfTheNext) {
  settle();
  answers["/events"] = {{GetParam(), "{}"}, {201, "{}"}};
  add_fault();
  advance(Milliseconds(1));
  add_fault();
  hear();
  EXPECT_EQ(count("default/events"), 2u);
  EXPECT_EQ(count("x/events"), 1u);
  EXPECT_EQ(count("/pods/y/status"), 1u);
}

INSTANTIATE_TEST_SUITE_P(With, OneCallRefused, testing::Values(403, 404, 500, 504));

TEST_F(ReporterTest, PodsThatCannotBeListedKeepNoFaultFromBeingTold) {
  for (const int status : {403, 404, 500}) {
    settle();
    answers["GET /api/v1/pods"] = {{status, R"({"message": "pods is forbidden"})"}};
    add_fault();
    hear();
    EXPECT_EQ(count("/events"), 0u) << status << ": it may be so for a moment";
    advance(Reporter::name_patience);
    hear();
    advance(Pause::longest);
    hear();
    EXPECT_EQ(count("/events"), 1u) << status;
    EXPECT_THAT(lines, Contains(HasSubstr("cannot be listed: HTTP"))) << status;
    EXPECT_THAT(lines, Contains(HasSubstr("caused by the pod of uid 0a1b2c3d-"))) << status;
  }
}

// The server waits for its pods too long, say, and answers everything else.
TEST_F(ReporterTest, PodsThatTheServerDoesNotComeToKeepNoFaultFromBeingTold) {
  for (const int status : {0, 429, 503}) {
    settle();
    answers["GET /api/v1/pods"] = {{status, "it is busy"}};
    add_fault();
    hear();
    EXPECT_EQ(count("/events"), 0u) << status << ": it may be so for a moment";
    advance(Reporter::name_patience);
    hear();
    advance(Pause::longest);
    hear();
    EXPECT_EQ(count("/events"), 1u) << status;
    EXPECT_THAT(lines, Contains(HasSubstr("caused by the pod of uid 0a1b2c3d-"))) << status;
  }
}

TEST_F(ReporterTest, PodsThatCanBeListedAgainAreNamed) {
  settle();
  answers["GET /api/v1/pods"] = {{403, "{}"}, {200, pod_list}};
  add_fault();
  hear();
  advance(Pause::first);
  hear();
  EXPECT_EQ(count("/events"), 2u);
  EXPECT_EQ(count("/pods/y/status"), 1u);
}

TEST_F(ReporterTest, AnAnnotationThatIsRefusedIsTriedAgain) {
  for (const int status : {403, 409, 500}) {
    settle();
    answers["/pods/y/status"] = {{status, "{}"}, {200, "{}"}};
    add_fault();
    hear();
    EXPECT_EQ(count("/pods/y/status"), 1u) << status;
    advance(std::chrono::minutes(1));
    answers["/events"] = {{409, "{}"}};
    hear();
    EXPECT_EQ(count("/pods/y/status"), 2u) << status;
    answers["/events"] = {{201, "{}"}};
  }
}

TEST_F(ReporterTest, AnotherPodUnderTheNameIsLeftAlone) {
  settle();
  answers["/pods/y/status"] = {{409, "{}"}};
  answers["GET /api/v1/pods"] = {{200, pod_list}, {200, R"({"items": []})"}};
  add_fault();
  hear();
  answers["/events"] = {{409, "{}"}};
  for (int i = 0; i < 10; ++i) {
    advance(std::chrono::minutes(1));
    hear();
  }
  EXPECT_EQ(count("/pods/y/status"), 1u);
  EXPECT_EQ(count("GET /api/v1/pods"), 2u);
}

TEST_F(ReporterTest, APodKeepsTheAnnotationOfItsLastFault) {
  settle();
  answers["/events"] = {{500, "{}"}, {201, "{}"}};
  add_fault();
  advance(Milliseconds(1));
  add_fault();
  hear();  // the first one waits, and the second is told
  advance(Pause::first);
  hear();
  EXPECT_EQ(count("x/events"), 2u);
  EXPECT_EQ(count("/pods/y/status"), 1u);
}

TEST_F(ReporterTest, WordsThatTheServerDoesNotTakeAreNotSaidAgain) {
  settle();
  answers["/events"] = {{422, R"({"message": "invalid"})"}};
  add_fault();
  hear();
  advance(std::chrono::minutes(1));
  hear();
  EXPECT_EQ(count("/events"), 1u);
  EXPECT_THAT(lines, ElementsAre("a fault cannot be told: HTTP 422: invalid"));
}

TEST_F(ReporterTest, AsksOneThingAtATime) {
  reporter.agent_said(status, now);
  EXPECT_TRUE(reporter.next(now));
  EXPECT_FALSE(reporter.next(now));
  add_fault();
  reporter.agent_said(status, now);
  EXPECT_FALSE(reporter.next(now));
  reporter.answered({200, R"({"kind": "Node"})"}, now);
  EXPECT_TRUE(reporter.next(now));
}

}  // namespace
}  // namespace firebreak::cluster
