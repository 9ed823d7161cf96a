// SPDX-License-Identifier: Apache-2.0
#include "commands/exporter/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace firebreak::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* status = R"json({
  "version": "0.6.0 (abc)",
  "counts": {
    "agent_starts": 3,
    "past_faults": [{"id": "1mjnajw", "culprit": "first"},
      {"id": "1mjnajx", "at": "2025-11-29T08:10:05Z", "at_ns": 7, "class": "sm", "outcome": "lost", "domain": "a",
       "culprit": "rogue", "what": "Xid 13"}],
    "culprits": {"known": 1, "unknown": 2},
    "domain_restarts": {"a": {"daemon": 0, "server": 4}},
    "faults": {"sm": {"contained": 0, "parked": 1, "failed_over": 5, "lost": 2}},
    "promotions": {"xid": 5, "exit": 0, "hand_over": 1, "earlier": 0},
    "promotion_times": {"bounds_s": [0.005, 0.01], "counts": [1, 2, 3], "sum_us": 1500000}
  },
  "domains": [{"name": "a", "gpu": "GPU-1", "state": "draining"}],
  "gpus": [{"number": 0, "uuid": "GPU-1", "pci": "0000:3b:00", "needs": "reset", "reason": "Xid 95, RESET_GPU"}],
  "anchors": [{"name": "anchor", "gpu": "GPU-1", "state": "serving"}],
  "holds": [{"pid": 7, "state": "waiting", "since_death_ms": 12}, {"pid": 8, "state": "ready", "since_death_ms": null}],
  "tenants": [
    {"name": "llm", "phase": "serving", "standby_state": "ready", "committed_steps": 41, "memory_bytes": 2097152,
     "guard": {"strays": 6}, "active": {"pid": 4711}},
    {"name": "a \"b\"\\\n", "phase": "serving", "standby_state": "joined", "committed_steps": 0, "memory_bytes": 0},
    {"name": "plain", "phase": "empty", "standby_state": "none"},
    {"name": "gone", "phase": "lost", "standby_state": "none"}]
})json";

std::string text_of(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

TEST(Metrics, SayWhatTheStatusSays) {
  const std::string text = text_of(metrics_of(status));
  for (const char* line : {
           "firebreak_up 1\n",
           "firebreak_build_info{version=\"0.6.0 (abc)\"} 1\n",
           "# TYPE firebreak_agent_starts_total counter\nfirebreak_agent_starts_total 3\n",
           "firebreak_domain_state{domain=\"a\",gpu=\"GPU-1\",state=\"draining\"} 1\n",
           "firebreak_domain_state{domain=\"a\",gpu=\"GPU-1\",state=\"serving\"} 0\n",
           "firebreak_domain_state{domain=\"anchor\",gpu=\"GPU-1\",state=\"serving\"} 1\n",
           "firebreak_gpu_needs{gpu=\"GPU-1\",pci=\"0000:3b:00\",need=\"reset\"} 1\n",
           "firebreak_gpu_needs{gpu=\"GPU-1\",pci=\"0000:3b:00\",need=\"reboot\"} 0\n",
           "firebreak_domain_restarts_total{domain=\"a\",what=\"server\"} 4\n",
           "firebreak_faults_total{class=\"sm\",outcome=\"failed_over\"} 5\n",
           "firebreak_faults_total{class=\"sm\",outcome=\"contained\"} 0\n",
           "firebreak_last_fault_info{id=\"1mjnajx\",at=\"2025-11-29T08:10:05Z\",class=\"sm\",outcome="
           "\"lost\","
           "domain=\"a\",culprit=\"rogue\"} 1\n",
           "firebreak_fault_culprit_total{known=\"false\"} 2\n",
           "firebreak_promotions_total{fence=\"hand_over\"} 1\n",
           "firebreak_tenant_protected{tenant=\"llm\"} 1\n",
           "firebreak_tenant_protected{tenant=\"gone\"} 0\n",
           "firebreak_tenant_committed_steps_total{tenant=\"llm\"} 41\n",
           "firebreak_tenant_strays_total{tenant=\"llm\"} 6\n",
           "firebreak_vault_bytes{tenant=\"llm\"} 2097152\n",
           "firebreak_held_processes 1\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("1mjnajw"))) << "one series, however many faults there were";
  EXPECT_THAT(text, Not(HasSubstr("4711"))) << "a process's number is nothing to draw a curve by";
}

TEST(Metrics, BucketsAddUp) {
  const std::string text = text_of(metrics_of(status));
  const std::string name = "firebreak_promotion_duration_seconds";
  EXPECT_THAT(text, HasSubstr(name + "_bucket{le=\"0.01\"} 3\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{le=\"+Inf\"} 6\n"));
  EXPECT_THAT(text, HasSubstr(name + "_count 6\n" + name + "_sum 1.5\n"));
}

TEST(Metrics, OnlyWhoCanHaveAStandbyIsUnprotectedWithoutOne) {
  const std::string text = text_of(metrics_of(status));
  EXPECT_THAT(text, Not(HasSubstr("protected{tenant=\"plain\"}")));
  EXPECT_THAT(text, HasSubstr("steps_total{tenant=\"plain\"} 0\n"));
}

TEST(Metrics, WordsOfTenantsAreQuoted) {
  EXPECT_THAT(text_of(metrics_of(status)), HasSubstr(R"(protected{tenant="a \"b\"\\\n"} 0)"));
}

TEST(Metrics, OfAnAgentThatCountsNothingAreWhatItSays) {
  const std::string text = text_of(metrics_of(R"({"domains": [], "tenants": [{"name": "x"}]})"));
  EXPECT_THAT(text, HasSubstr("firebreak_up 1\n"));
  EXPECT_THAT(text, HasSubstr("firebreak_vault_bytes{tenant=\"x\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("firebreak_faults")));
  EXPECT_THAT(text_of(metrics_of(R"({"counts": {"past_faults": [7]}})")),
              HasSubstr("last_fault_info{id=\"\""));
  EXPECT_EQ(version_in("{}"), "");
}

TEST(Metrics, NonsenseIsNoAgent) {
  for (const char* nonsense : {"", "[]", "{", "7"})
    EXPECT_EQ(text_of(metrics_of(nonsense)), text_of(metrics_without_agent())) << nonsense;
  for (const char* odd :
       {R"({"domains": 7, "tenants": [7, null], "holds": {}, "counts": []})",
        R"({"counts": {"faults": 1, "domain_restarts": [1], "promotion_times": {"counts": 3}}})"})
    EXPECT_THAT(text_of(metrics_of(odd)), HasSubstr("firebreak_up 1\n")) << odd;
}

}  // namespace
}  // namespace firebreak::exporter
