// SPDX-License-Identifier: Apache-2.0
// A tenant that ends with a kernel under way, whoever ended it: the agent lets that kernel run to its end,
// and nobody else notices.
#include <signal.h>

#include <algorithm>

#include "tests/guard/agent_on_stage.h"
#include "tests/guard/memory_group.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

constexpr int victim_of_a_fault = 3;
constexpr const char* work_left = "FIREBREAK_SOFTGPU_ORPHANED_WORK_MS";

class Dying : public AgentOnStage {
 protected:
  Dying() { environment_ = {{"FIREBREAK_LOG", "info"}}; }
  /// A spinner, ended by `signal` to its own process, beside a neighbour that must not notice.
  void expect_spared(int signal) {
    start_agent({"--hold-s", "1"});
    Player& neighbour = start_neighbour();
    const Player& spinner = start_held_spinner();
    send(pid_of("spinner"), signal);
    wait_for_end(spinner);
    expect_released(neighbour);
  }
  void expect_released(Player& neighbour) {
    wait("the release", [&] { return agent_->said("its last kernels are taken to have ended"); });
    EXPECT_FALSE(agent_->said("fault tenant"));
    expect_unharmed(neighbour);
    // The neighbour is let go at once, since nobody is beside it.
    ask_until("no hold", [&] { return status().at("holds").empty(); });
  }
  /// Once the agent has what it needs to hold.
  Player& start_held_spinner(const std::string& argument = {}, std::vector<std::string> run_arguments = {}) {
    Player& spinner = start_spinner(argument, std::move(run_arguments));
    const pid_t pid = pid_of("spinner");
    ask_until("the hold", [&] { return is_held(pid); });
    return spinner;
  }
  /// One that is guarded, once its page says that of its work.
  Player& start_guarded_spinner(const std::string& work, const std::string& argument = {}) {
    Player& spinner = start_held_spinner(argument, {"--guard"});
    wait_for_status("spinner", [&](const auto& tenant) { return tenant["guard"]["work"] == work; });
    return spinner;
  }
  void kill_spinner(const Player& spinner) {
    send(pid_of("spinner"), SIGKILL);
    wait_for_end(spinner);
  }
  bool is_held(pid_t pid) {
    const auto document = status();
    return std::ranges::any_of(document["holds"], [&](const auto& hold) { return hold["pid"] == pid; });
  }
  std::string state_of_hold(const std::string& tenant) {
    const auto document = status();
    for (const auto& hold : document["holds"]) {
      if (hold["tenant"] == tenant) return hold["state"];
    }
    return "none";
  }
  nlohmann::json status() { return nlohmann::json::parse(command({"status", "--json"}).output); }
};

TEST_F(Dying, Killed) { expect_spared(SIGKILL); }
TEST_F(Dying, Crashed) { expect_spared(SIGSEGV); }
TEST_F(Dying, ToldToEndByAStranger) { expect_spared(SIGTERM); }
TEST_F(Dying, ExitInMidKernel) { expect_spared(SIGUSR1); }

TEST_F(Dying, BecomingAnotherProgram) {
  start_agent({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner();
  const pid_t pid = pid_of("spinner");
  send(pid, SIGUSR2);
  ask_until("no hold", [&] { return !is_held(pid); });
  send(pid, SIGKILL);
  wait_for_end(spinner);
  expect_unharmed(neighbour);
}

TEST_F(Dying, KilledByItsDebugger) {
  start_agent({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner();
  const auto debugged = sandbox_.run("guard_test_debugger", {std::to_string(pid_of("spinner"))});
  EXPECT_EQ(debugged.status.exit_code, 0) << debugged.output;
  wait_for_end(spinner);
  EXPECT_EQ(spinner.exit_status(), 128 + SIGKILL);
  expect_released(neighbour);
}

// First a word to the container's first process, then SIGKILL.
TEST_F(Dying, StoppedByAContainerRuntime) {
  start_agent({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner("--stubborn");
  spinner.actor->signal(SIGTERM);
  spinner.actor->signal(SIGKILL);
  wait_for_end(spinner);
  expect_released(neighbour);
}

TEST_F(Dying, ByTheOutOfMemoryKiller) {
  const auto group = MemoryGroup::create(256);
  if (!group) GTEST_SKIP() << to_string(group.error());
  start_agent({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner();
  const pid_t pid = pid_of("spinner");
  ASSERT_TRUE(group->take_in(pid));
  send(pid, SIGALRM);
  wait_for_end(spinner);
  EXPECT_EQ(spinner.exit_status(), 128 + SIGKILL);
  expect_released(neighbour);
}

// A fault resets the channels of all of them: nothing is under way there any more, and what is held would
// only keep the domain from draining.
TEST_F(Dying, NobodyIsHeldWhoseDomainHadAFault) {
  start_agent({"--hold-s", "1000"});
  start_tenant("bystander", {"sleep", "1000"});  // nothing must harm it, as far as the agent knows
  wait_for_status("bystander", [](const auto& tenant) { return !tenant["active"].is_null(); });
  const Player& spinner = start_held_spinner();
  const Player& rogue =
      start_tenant("rogue", {program("firebreak-lab"), "inject", "--wait", "misaligned-load"});
  wait("the rogue", [&] { return rogue.said("prepared"); });
  rogue.actor->tell("go");
  wait("its fault", [&] { return rogue.said("MISALIGNED_ADDRESS"); });
  kill_spinner(spinner);
  wait("the release", [&] { return agent_->said("released tenant=spinner"); });
  EXPECT_EQ(command({"stop", "bystander"}).status.exit_code, 0);
}

// Also what a process closes itself is then nobody's any more.
TEST_F(Dying, TakesItsDomainAlongWhereNothingIsHeld) {
  start_agent({"--hold-s", "0"});
  const Player& neighbour = start_neighbour();
  const Player& spinner = start_spinner();
  EXPECT_TRUE(status().at("holds").empty());
  const pid_t pid = pid_of("spinner");
  send(pid, SIGUSR2);
  wait_for_end(neighbour);
  send(pid, SIGKILL);
  wait_for_end(spinner);
  EXPECT_EQ(neighbour.exit_status(), victim_of_a_fault);
}

// Whether it still runs nobody can see.
TEST_F(Dying, WithAnEndlessKernelTakesItsDomainAlongInTheEnd) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "4"});
  const Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner();
  kill_spinner(spinner);
  EXPECT_FALSE(neighbour.actor->ended());
  EXPECT_EQ(state_of_hold("spinner"), "waiting");
  EXPECT_EQ(state_of_hold("neighbour"), "ready");
  wait_for_end(neighbour);
  EXPECT_EQ(neighbour.exit_status(), victim_of_a_fault);
}

// Except where more work waits behind it.
TEST_F(Dying, WithWorkThatIsKnownToRunOnHoldsLongerAndSaysSo) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "0.1", "--longest-hold-s", "6"});
  const Player& neighbour = start_neighbour();
  const Player& spinner = start_held_spinner("--queue");
  kill_spinner(spinner);
  wait("the warning",
       [&] { return agent_->said("its work runs on after its end; 1 tenants in its domain"); });
  EXPECT_FALSE(neighbour.actor->ended());
  EXPECT_EQ(state_of_hold("spinner"), "endless");
  wait_for_end(neighbour);
  EXPECT_EQ(neighbour.exit_status(), victim_of_a_fault);
  EXPECT_TRUE(agent_->said("with work that runs on: its domain fails"));
}

class GuardedDying : public Dying {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  }
};

TEST_F(GuardedDying, IsLetGoWhenItsKernelIsKnownToHaveEnded) {
  environment_.emplace_back(work_left, "2000");
  start_agent({"--hold-s", "1000"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("running");
  kill_spinner(spinner);
  wait("the hold", [&] {
    return agent_->said(
        "its work is known to be under way, still running one of `spin`, `cuStreamWriteValue32_v2()`");
  });
  wait("the release", [&] { return agent_->said("its last kernels are known to have ended"); });
  wait("NVML's word", [&] { return agent_->said("NVML lists it no more: nothing was left"); });
  EXPECT_FALSE(agent_->said("fault tenant"));
  expect_unharmed(neighbour);
}

TEST_F(GuardedDying, WithAnEndlessKernelIsKnownToRunOn) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "0.1", "--longest-hold-s", "6"});
  const Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("running");
  kill_spinner(spinner);
  wait("the warning", [&] {
    return agent_->said(
        "its work runs on after its end, still running one of `spin`, `cuStreamWriteValue32_v2()`; 1 "
        "tenants");
  });
  EXPECT_EQ(state_of_hold("spinner"), "endless");
  EXPECT_FALSE(neighbour.actor->ended());
  wait_for_end(neighbour);
  EXPECT_EQ(neighbour.exit_status(), victim_of_a_fault);
  EXPECT_TRUE(agent_->said("with work that runs on: its domain fails"));
}

TEST_F(GuardedDying, WithNothingUnderWayIsLetGoAtOnce) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "1000"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("ended", "--finite");
  kill_spinner(spinner);
  wait("the release", [&] { return agent_->said("its last kernels are known to have ended"); });
  expect_unharmed(neighbour);
}

TEST_F(GuardedDying, IsNotSaidToHaveEndedWhileCopiesAndFillsWait) {
  start_agent();
  const Player& spinner = start_guarded_spinner("running", "--copies");
  EXPECT_EQ(command({"stop", "spinner"}).status.exit_code, 0);
  wait_for_end(spinner);
}

TEST_F(GuardedDying, IsKnownToHaveEndedWhereStreamsWaitForEachOther) {
  start_agent();
  const Player& spinner = start_guarded_spinner("ended", "--beside");
  EXPECT_EQ(command({"stop", "spinner"}).status.exit_code, 0);
  wait_for_end(spinner);
}

TEST_F(GuardedDying, WithMoreStreamsThanAreCountedIsHeldForATime) {
  start_agent({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("unknown", "--streams");
  kill_spinner(spinner);
  expect_released(neighbour);
}

// Its standby waits for the word, for as long as it is told to.
TEST_F(GuardedDying, OfAnActiveItsStandbyWaitsForTheKernelsEnd) {
  environment_.emplace_back(work_left, "300");
  start_agent({"--hold-s", "1000", "--fence-wait-s", "1000"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("running");
  const Player& standby = start_tenant(
      "spinner", {program("firebreak-decode"), "--steps", "1", "--output", sandbox_.file("tokens")},
      {"--standby"});
  wait_for_status("spinner", [](const auto& tenant) { return tenant["standby_state"] != "none"; });
  kill_spinner(spinner);
  wait("the release", [&] { return agent_->said("its last kernels are known to have ended"); });
  EXPECT_EQ(command({"stop", "spinner"}).status.exit_code, 0);
  wait_for_end(standby);
  expect_unharmed(neighbour);
}

// What its predecessor's kernel still writes must not land in what it works on.
TEST_F(GuardedDying, OfAnActiveWhoBeginsAnewWaitsForTheKernelsEnd) {
  environment_.emplace_back(work_left, "2000");
  start_agent({"--hold-s", "1000"});
  Player& neighbour = start_neighbour();
  const Player& spinner = start_guarded_spinner("running");
  kill_spinner(spinner);
  const Player& successor = start_tenant(
      "spinner", {program("firebreak-decode"), "--steps", "1", "--output", sandbox_.file("tokens")});
  wait("the join", [&] { return agent_->said("joined tenant=spinner"); });
  EXPECT_TRUE(agent_->said("its last kernels are known to have ended"));
  wait_for_end(successor);
  EXPECT_EQ(successor.exit_status(), 0);
  expect_unharmed(neighbour);
}

TEST_F(Dying, WithNobodyBesideItWaitsForNothing) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "1000"});
  const Player& spinner = start_held_spinner();
  kill_spinner(spinner);
  wait("the release", [&] { return agent_->said("let go"); });
}

TEST_F(Dying, WithWorkThatIsKnownToRunOnFirstMovesWhoHasAStandby) {
  environment_.emplace_back(work_left, "endless");
  start_agent({"--hold-s", "0.1", "--longest-hold-s", "1000"});
  const std::vector<std::string> decode = {
      program("firebreak-decode"), "--steps", "100000", "--pace-ms", "20", "--output",
      sandbox_.file("tokens")};
  start_tenant("llm", decode);
  wait_for_status("llm", [](const auto& tenant) { return tenant["phase"] == "serving"; });
  start_tenant("llm", decode, {"--standby"});
  wait_for_status("llm", [](const auto& tenant) { return tenant["standby_state"] == "ready"; });
  const Player& spinner = start_held_spinner("--queue");
  kill_spinner(spinner);
  wait("the release", [&] { return agent_->said("with work that runs on: its domain fails"); });
  wait_for_status(
      "llm", [](const auto& tenant) { return tenant["epoch"] == 1 && tenant["active"]["domain"] == "b"; });
  EXPECT_EQ(command({"stop", "llm"}).status.exit_code, 0);
}

}  // namespace
}  // namespace firebreak::tests
