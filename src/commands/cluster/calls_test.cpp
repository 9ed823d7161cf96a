// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace firebreak::cluster {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

const Instant noon{Monotonic(std::chrono::seconds(100)),
                   std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000))};
const Pod pod{"x", "y", "1"};

link::FaultView some_fault() {
  return {to_ns(noon.monotonic) - 10'000'000'000, "sm", "failed_over", "a", "rogue", "misaligned-load", ""};
}

TEST(Condition, IsTrueWhileADomainTakesNoClients) {
  link::StatusView status;
  status.domains = {{"a", "GPU-1", "serving"}, {"b", "GPU-1", "serving"}};
  EXPECT_EQ(condition_of(status).status, "False");
  status.domains[1].state = "draining";
  status.domains.push_back({"c", "GPU-1", "silent"});
  EXPECT_EQ(condition_of(status).status, "True");
  EXPECT_EQ(condition_of(status).message, "domain b is draining, domain c is silent");
  status.domains = {{"a", "GPU-1", "gpu_failed", "its GPU needs a reset (Xid 95, RESET_GPU)"}};
  EXPECT_EQ(condition_of(status).message,
            "domain a is gpu_failed: its GPU needs a reset (Xid 95, RESET_GPU)");
  EXPECT_EQ(condition_without_agent().status, "Unknown");
}

TEST(Condition, OfANodeIsReadFromIt) {
  const auto known = known_condition_in(
      R"({"kind": "Node", "status": {"conditions": [7, {"type": "Ready", "status": "True", "lastTransitionTime": "t"},
          {"type": "FirebreakDomainFault", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->status, "True");
  EXPECT_EQ(known->changed, "2026-01-01T00:00:00Z");
  for (const char* none :
       {R"({"kind": "Node"})", R"({"kind": "Node", "status": {"conditions": 3}})",
        R"({"kind": "Node", "status": {"conditions": [{"type": "FirebreakDomainFault"}]}})"}) {
    ASSERT_TRUE(known_condition_in(none)) << none;
    EXPECT_EQ(known_condition_in(none)->status, "") << none;
  }
  for (const char* other : {"", "[]", R"({"kind": "Status"})", R"({"kind": 3})"})
    EXPECT_FALSE(known_condition_in(other)) << other;
}

TEST(Condition, IsPatchedIntoTheNodesStatus) {
  const ApiCall call = set_condition("n1", {"True", "Why", "what"}, "2026-01-01T00:00:00Z", noon);
  EXPECT_EQ(call.method, "PATCH");
  EXPECT_EQ(call.path, "/api/v1/nodes/n1/status");
  EXPECT_EQ(call.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(json::parse(call.body), json::parse(R"({"status": {"conditions": [{"type": "FirebreakDomainFault",
      "status": "True", "reason": "Why", "message": "what", "lastHeartbeatTime": "2023-11-14T22:13:20Z",
      "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})"));
}

TEST(Event, OfANodeIsInTheDefaultNamespaceAndNamesThePod) {
  const ApiCall call = tell_of_node("n1", some_fault(), &pod, noon);
  EXPECT_EQ(call.path, "/api/v1/namespaces/default/events");
  const json event = json::parse(call.body);
  EXPECT_EQ(event["metadata"]["namespace"], "default");
  EXPECT_EQ(event["involvedObject"]["kind"], "Node");
  EXPECT_EQ(event["involvedObject"]["name"], "n1");
  EXPECT_EQ(event["reason"], "GpuFaultFailedOver");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["firstTimestamp"], "2023-11-14T22:13:10Z") << "when the fault was";
  EXPECT_EQ(event["message"],
            "misaligned-load (sm) in domain a, caused by pod x/y (tenant rogue): a standby went on");
}

TEST(Event, OfAPodIsInItsNamespace) {
  const ApiCall call = tell_of_pod("n1", some_fault(), pod, noon);
  EXPECT_EQ(call.path, "/api/v1/namespaces/x/events");
  const json event = json::parse(call.body);
  EXPECT_EQ(event["involvedObject"], json::parse(R"({"apiVersion": "v1", "kind": "Pod", "namespace": "x",
      "name": "y", "uid": "1"})"));
  EXPECT_EQ(event["reason"], "CausedGpuFault");
}

TEST(Event, HasOneNameForOneFault) {
  const std::string name = event_name("node", "n1", some_fault());
  EXPECT_THAT(name, MatchesRegex("[a-z][a-z0-9.-]+[a-z0-9]"));
  EXPECT_EQ(event_name("node", "n1", some_fault()), name);
  link::FaultView later = some_fault(), elsewhere = some_fault(), by_another = some_fault();
  ++later.at_ns;
  elsewhere.domain = "b";
  by_another.culprit = "other";
  EXPECT_NE(event_name("pod", "n1", some_fault()), name) << "a pod in the default namespace has both";
  EXPECT_NE(event_name("node", "n2", some_fault()), name);
  EXPECT_NE(event_name("node", "n1", later), name);
  EXPECT_NE(event_name("node", "n1", elsewhere), name);
  EXPECT_NE(event_name("node", "n1", by_another), name);
}

TEST(Event, SaysWhoItWasAsFarAsIsKnown) {
  link::FaultView fault = some_fault();
  EXPECT_THAT(described(fault, nullptr), HasSubstr("caused by tenant rogue: "));
  fault.control_group = "/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3/c";
  EXPECT_THAT(described(fault, nullptr), HasSubstr("the pod of uid 0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3"));
  fault.culprit = "process 7";
  EXPECT_THAT(described(fault, &pod), HasSubstr("caused by pod x/y (process 7): "));
  fault.culprit = "";
  EXPECT_THAT(described(fault, nullptr), HasSubstr("by nobody who is known"));
  fault.what = "";
  fault.domain = "";
  EXPECT_THAT(described(fault, nullptr), testing::StartsWith("a fault (sm), "));
}

TEST(Event, HasTheFaultsIdAndItsMomentAsTheAgentSaysThem) {
  link::FaultView fault = some_fault();
  fault.id = "1mjnajx";
  fault.at = "2025-11-29T08:10:05Z";
  for (const ApiCall& call : {tell_of_node("n1", fault, &pod, noon), tell_of_pod("n1", fault, pod, noon)}) {
    const json event = json::parse(call.body);
    EXPECT_THAT(event["message"].get<std::string>(), testing::StartsWith("1mjnajx: misaligned-load (sm)"));
    EXPECT_EQ(event["firstTimestamp"], "2025-11-29T08:10:05Z");
  }
  EXPECT_THAT(annotate(fault, pod, noon).body, HasSubstr("2025-11-29T08:10:05Z 1mjnajx: misaligned-load"));
}

TEST(Event, IsWholeWhateverATenantSays) {
  link::FaultView fault = some_fault();
  fault.what = "\xff\"\n" + std::string(5'000, 'x');
  fault.outcome = "of another version";
  const json event = json::parse(tell_of_node("n1", fault, &pod, noon).body);
  EXPECT_LT(event["message"].get<std::string>().size(), 1'000u);
  EXPECT_EQ(event["reason"], "GpuFault");
}

TEST(Annotation, IsOfThePodOfThatUidAlone) {
  const ApiCall call = annotate(some_fault(), pod, noon);
  EXPECT_EQ(call.method, "PATCH");
  EXPECT_EQ(call.path, "/api/v1/namespaces/x/pods/y/status");
  EXPECT_EQ(json::parse(call.body), json::parse(R"({"metadata": {"uid": "1", "annotations": {
      "firebreak.dev/last-fault": "2023-11-14T22:13:10Z misaligned-load (sm) in domain a: a standby went on"}}})"));
}

TEST(AnswerWords, AreTheServersOwnInOneLine) {
  EXPECT_EQ((ApiAnswer{403, R"({"message": "no\nright"})"}.described()), "HTTP 403: no right");
  EXPECT_EQ((ApiAnswer{502, "<html>"}.described()), "HTTP 502");
  EXPECT_EQ((ApiAnswer{0, "refused"}.described()), "refused");
  const std::string longest = ApiAnswer{500, json{{"message", std::string(9'999, 'x')}}.dump()}.described();
  EXPECT_LT(longest.size(), 400u);
}

}  // namespace
}  // namespace firebreak::cluster
