// SPDX-License-Identifier: Apache-2.0
// What becomes of MPS domains whose agent, daemon or server dies, or that have a fault.
#include <signal.h>

#include <optional>
#include <thread>

#include "ground/os/file.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Domains : public AgentOnStage {
 protected:
  nlohmann::json domain(const std::string& name) {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    for (const auto& entry : all["domains"]) {
      if (entry["name"] == name) return entry;
    }
    return nullptr;
  }
  void wait_for_domain(const std::string& name, const std::function<bool(const nlohmann::json&)>& wanted) {
    ask_until("domain " + name, [&] {
      const nlohmann::json now = domain(name);
      return now.is_object() && wanted(now);
    });
  }
  static bool serves(const nlohmann::json& domain) { return domain["state"] == "serving"; }
  std::string domain_of(const std::string& tenant) { return status_of(tenant)["active"]["domain"]; }
  void kill_the_agent() {
    agent_->actor->signal(SIGKILL);
    wait_for_end(*agent_);
    agent_ = nullptr;
  }
};

TEST_F(Domains, ASecondAgentOnTheSameDirectoryIsRefused) {
  start_agent();
  const auto second = sandbox_.run(
      "firebreakd", {"--directory", sandbox_.file("d"), "--socket", sandbox_.file("other.sock")});
  EXPECT_EQ(second.status.exit_code, 1);
  EXPECT_EQ(second.output, "firebreakd: another agent uses this directory: process " +
                               std::to_string(agent_->actor->record().pid) + " holds " +
                               sandbox_.file("d/agent.lock") + "\n");
  EXPECT_TRUE(serves(domain("a")));
}

TEST_F(Domains, WhatAKilledAgentLeftIsRemovedByTheNext) {
  start_agent({"--end-domains"});
  kill_the_agent();
  EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
  start_agent();
  EXPECT_TRUE(agent_->said("MPS domain a: what was left of it is removed, since its daemon was gone"));
  Player& neighbour = start_neighbour();
  expect_unharmed(neighbour);
}

// It was being started when that agent was killed.
TEST_F(Domains, AChildOfAnAgentBeforeMayHaveItsLockForAMoment) {
  ASSERT_TRUE(os::make_directories(sandbox_.file("d")));
  std::optional<os::FileLock> lock =
      std::move(os::FileLock::take(sandbox_.file("d") + "/agent.lock").value());
  std::thread child([&] {
    std::this_thread::sleep_for(Milliseconds(200));
    lock.reset();
  });
  start_agent();
  child.join();
  EXPECT_FALSE(agent_->said("another agent uses this directory"));
}

TEST_F(Domains, OutliveAKilledAgentAndTheNextUsesThemOn) {
  start_agent();
  Player& neighbour = start_neighbour();
  const nlohmann::json before = domain("a");
  kill_the_agent();
  start_agent();
  EXPECT_TRUE(agent_->said("MPS domain a: daemon " + before["daemon_pid"].dump() +
                           " was left running and is used on"));
  Player& newcomer = start_neighbour("newcomer");
  EXPECT_EQ(domain("a")["daemon_pid"], before["daemon_pid"]);
  expect_unharmed(neighbour);
  expect_unharmed(newcomer);
}

// The agent had two GPUs, and has one that CUDA finds.
TEST_F(Domains, WhoseAgentIsGoneForGoodEndOnceNobodyIsThere) {
  environment_ = {{"FIREBREAK_SOFTGPU_COUNT", "2"}};
  start_agent({"--gpu", "GPU-66697265-6272-6561-6b2d-736f66742d30", "--gpu",
               "GPU-66697265-6272-6561-6b2d-736f66742d31"});
  Player& neighbour = start_neighbour();
  ASSERT_EQ(domain_of("neighbour"), "0a");
  kill_the_agent();
  start_agent();
  EXPECT_TRUE(agent_->said("MPS domain 0a, of an agent before, is none of this one's: it goes on"));
  EXPECT_TRUE(agent_->said("MPS domain 1b, of an agent before, is none of this one's, and was ended"));
  expect_unharmed(neighbour);
  kill_the_agent();
  start_agent();
  EXPECT_TRUE(agent_->said("MPS domain 0a, of an agent before, is none of this one's, and was ended"));
}

TEST_F(Domains, AGpuThatFallsOffTheBusDrawsNobodyUntilItIsWellAgain) {
  environment_ = {{"FIREBREAK_SOFTGPU_COUNT", "2"}};
  const std::string first = "GPU-66697265-6272-6561-6b2d-736f66742d30";
  const std::string second = "GPU-66697265-6272-6561-6b2d-736f66742d31";
  start_agent({"--gpu", first, "--gpu", second});
  Player& neighbour = start_neighbour();
  ASSERT_EQ(domain_of("neighbour"), "0a");
  const Player& rogue =
      start_tenant("rogue", {program("firebreak-lab"), "inject", "fallen-off-the-bus"}, {"--gpu", second});
  wait_for_domain("1a", [](const auto& now) { return now["state"] == "gpu_failed"; });
  wait_for_end(rogue);
  EXPECT_EQ(domain("1b")["state"], "gpu_failed");
  EXPECT_THAT(domain("1b")["gpu_needs"], "its GPU needs a reboot (Xid 79, RESTART_BM)");
  EXPECT_TRUE(serves(domain("0a")) && serves(domain("0b")));
  EXPECT_TRUE(agent_->said("GPU 1 (0000:00:06) needs a reboot (Xid 79, RESTART_BM)"));
  Player& newcomer = start_neighbour("newcomer");
  EXPECT_EQ(domain_of("newcomer"), "0a");
  EXPECT_EQ(command({"recovered", "0000:00:06"}).status.exit_code, 0);
  wait_for_domain("1a", serves);
  Player& later = start_neighbour("later");
  EXPECT_EQ(domain_of("later"), "1a");
  expect_unharmed(later);
  expect_unharmed(newcomer);
  expect_unharmed(neighbour);
}

TEST_F(Domains, ADaemonThatDiesIsStartedAgain) {
  start_agent();
  const nlohmann::json before = domain("a");
  send(before["daemon_pid"], SIGKILL);
  wait_for_domain("a", [](const auto& now) { return now["daemon_restarts"] == 1 && serves(now); });
  EXPECT_NE(domain("a")["daemon_pid"], before["daemon_pid"]);
  EXPECT_TRUE(agent_->said("MPS domain a: its MPS daemon " + before["daemon_pid"].dump() + " has ended"));
  EXPECT_EQ(domain("b")["daemon_restarts"], 0);
  Player& neighbour = start_neighbour();
  EXPECT_EQ(domain_of("neighbour"), "a");
  expect_unharmed(neighbour);
}

TEST_F(Domains, AServerThatDiesIsStartedAgain) {
  start_agent();
  const Player& victim = start_neighbour("victim");
  wait_for_domain("a", [](const auto& now) { return now["server_pids"].size() == 1; });
  const nlohmann::json before = domain("a");
  send(before["server_pids"][0], SIGKILL);
  wait_for_end(victim);
  wait_for_domain("a", [](const auto& now) { return now["server_restarts"] == 1 && serves(now); });
  EXPECT_EQ(domain("a")["daemon_pid"], before["daemon_pid"]);
  EXPECT_NE(domain("a")["server_pids"], before["server_pids"]);
  Player& neighbour = start_neighbour();
  EXPECT_EQ(domain_of("neighbour"), "a");
  expect_unharmed(neighbour);
}

TEST_F(Domains, OneThatHadAFaultTakesNobodyUntilItHasDrained) {
  start_agent();
  const Player& hit = start_neighbour("hit");
  const pid_t stopped = pid_of("hit");
  send(stopped, SIGSTOP);
  start_tenant("rogue", {program("firebreak-lab"), "inject", "trap"});
  wait_for_domain("a", [](const auto& now) { return now["state"] == "draining"; });

  Player& newcomer = start_neighbour("newcomer");
  EXPECT_EQ(domain_of("newcomer"), "b");
  EXPECT_EQ(domain("a")["state"], "draining");  // who was hit is still there

  send(stopped, SIGCONT);
  wait_for_end(hit);
  wait_for_domain("a", serves);
  Player& late = start_neighbour("late");
  EXPECT_EQ(domain_of("late"), "a");
  expect_unharmed(newcomer);
  expect_unharmed(late);
}

TEST_F(Domains, OneWhoseDaemonSomebodyHasStoppedTakesNobodyUntilItGoesOn) {
  start_agent();
  Player& inside = start_neighbour("inside");
  ASSERT_EQ(domain_of("inside"), "a");
  const pid_t daemon = domain("a")["daemon_pid"];
  send(daemon, SIGSTOP);
  wait_for_domain("a", [](const auto& now) { return now["state"] == "silent"; });
  Player& newcomer = start_neighbour("newcomer");
  EXPECT_EQ(domain_of("newcomer"), "b");
  send(daemon, SIGCONT);
  wait_for_domain("a", serves);
  expect_unharmed(inside);
  expect_unharmed(newcomer);
}

// As it does on an H100 and on an H200, such a server calls itself ACTIVE and fails its next client
// (docs/how/domains.md).
TEST_F(Domains, WhoIsPlacedAfterAnOnlyTenantDiedInMidKernelIsServed) {
  environment_.emplace_back("FIREBREAK_SOFTGPU_ORPHANED_WORK_MS", "endless");
  start_agent();
  const Player& spinner = start_spinner();
  ASSERT_EQ(domain_of("spinner"), "a");
  const nlohmann::json before = domain("a");
  send(pid_of("spinner"), SIGKILL);
  wait_for_end(spinner);
  wait("its fault", [&] { return agent_->said("MPS domain a: had a fault"); });
  wait_for_domain("a", serves);
  Player& next = start_tenant("next", {program("firebreak-lab"), "victim", "--pace-ms", "5"});
  wait("the next tenant", [&] { return next.said("ready") || next.actor->ended(); });
  ASSERT_FALSE(next.actor->ended()) << testing::PrintToString(next.lines);
  EXPECT_EQ(domain_of("next"), "a");
  EXPECT_NE(domain("a")["server_pids"], before["server_pids"]);
  expect_unharmed(next);
}

// Nobody has heard of the fault, and the server does not say.
TEST_F(Domains, WhoIsPlacedAfterAnOnlyTenantDiedWithoutAnAgentIsServed) {
  start_agent();
  const Player& spinner = start_spinner();
  const pid_t lost = pid_of("spinner");
  kill_the_agent();
  send(lost, SIGKILL);
  wait_for_end(spinner);
  start_agent();
  // With a new server, and a new daemon where the fault is heard of after all.
  wait("the next server", [&] { return agent_->said("MPS domain a: serves again, with"); });
  Player& next = start_tenant("next", {program("firebreak-lab"), "victim", "--pace-ms", "5"});
  wait("the next tenant", [&] { return next.said("ready") || next.actor->ended(); });
  ASSERT_FALSE(next.actor->ended()) << testing::PrintToString(next.lines);
  EXPECT_EQ(domain_of("next"), "a");
  expect_unharmed(next);
}

TEST_F(Domains, AreShownToPeople) {
  start_agent();
  const auto shown = command({"status"});
  EXPECT_THAT(shown.output, HasSubstr("DOMAIN  STATE    GPU"));
  EXPECT_THAT(shown.output, HasSubstr("a       serving  (default)"));
  EXPECT_THAT(shown.output, HasSubstr("no tenants"));
}

}  // namespace
}  // namespace firebreak::tests
