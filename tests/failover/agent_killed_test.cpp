// SPDX-License-Identifier: Apache-2.0
/// The agent is killed while a pair computes: its tenants do not notice, and a takeover still happens.
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "shared/link/status_view.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr int killed_by_signal = 128 + SIGKILL;

constexpr const char* rogue = "rogue";

class AgentKilled : public SupervisedAgent {
 protected:
  std::vector<pid_t> servers_of(const std::string& domain) {
    return link::parse_status(command({"status", "--json"}).output).servers[domain];
  }
  /// The next agent ends the standby, and nothing happens to the active.
  void expect_given_up(Player& standby, Player& active) {
    wait_for_end(standby);
    EXPECT_EQ(standby.exit_status(), killed_by_signal);
    wait_for_status(tenant, [](const auto& now) { return now["standby_state"] == "none"; });
    EXPECT_EQ(status_of(tenant)["phase"], "serving");
    active.actor->signal(SIGTERM);
    wait_for_end(active);
  }
};

TEST_F(AgentKilled, AndThenTheActiveIsTakenOver) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  kill_agent();
  wait_for_next_agent();
  const nlohmann::json before = status_of(tenant);
  EXPECT_EQ(before["phase"], "serving");
  EXPECT_EQ(before["standby_state"], "ready");
  wait_for_steps(before["committed_steps"].get<std::uint64_t>() + 2);
  send(pid_of(tenant), SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(active.exit_status(), killed_by_signal);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, WithItsSupervisorAndThenTheActiveIsTakenOver) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  kill_supervisor();
  const nlohmann::json before = status_of(tenant);
  ASSERT_EQ(before["phase"], "serving");
  EXPECT_EQ(before["standby_state"], "ready");
  wait_for_steps(before["committed_steps"].get<std::uint64_t>() + 2);
  send(pid_of(tenant), SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, WhileTheActiveDiesToo) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t active_pid = pid_of(tenant);
  kill_agent();
  send(active_pid, SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(active.exit_status(), killed_by_signal);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  wait_for_next_agent();
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, WhileTheActiveLeavesInGoodOrder) {
  start_supervised();
  // All but the last step: a standby waits for the next agent for 30 s, and no longer.
  std::vector<std::string> all_but_one = decode();
  all_but_one.insert(all_but_one.end(), {"--slow-until", told_to_end_});
  Player& active = start_tenant(tenant, std::move(all_but_one));
  wait_for_steps(steps - 1);
  Player& standby = start_standby();
  kill_agent_for_a_while();
  let_them_end();
  wait_for_end(active);
  EXPECT_EQ(active.exit_status(), 0) << active.actor->record().last_words;
  EXPECT_FALSE(standby.actor->ended());
  resume_supervisor();
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << standby.actor->record().last_words;
  EXPECT_FALSE(standby.said("output")) << "it has nothing to do: " << testing::PrintToString(standby.lines);
  wait_until_unknown();
  expect_output_as_if_nothing_happened();
}

/// A standby sleeps: nobody but the next agent can find out that its context is gone.
TEST_F(AgentKilled, WhileTheMpsServerOfTheStandbyEnds) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  const std::vector<pid_t> servers = servers_of(status_of(tenant)["standby"]["domain"]);
  ASSERT_EQ(servers.size(), 1u);
  kill_agent_for_a_while();
  send(servers.front(), SIGKILL);
  resume_supervisor();
  expect_given_up(standby, active);
}

TEST_F(AgentKilled, WhileTheDomainOfTheStandbyHasAFault) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  // A standby by its place only: so it runs where the other one does.
  Player& culprit =
      start_tenant(rogue, {program("firebreak-lab"), "inject", "--wait", "misaligned-load"}, {"--standby"});
  wait("the rogue", [&] { return culprit.said("prepared"); });
  kill_agent_for_a_while();
  culprit.actor->tell("go");
  wait("its fault", [&] { return culprit.said("MISALIGNED_ADDRESS"); });
  resume_supervisor();
  expect_given_up(standby, active);
}

TEST_F(AgentKilled, FiveTimesAndThePairEndsInGoodOrder) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  for (int kill = 0; kill < 5; ++kill) {
    kill_agent();
    wait_for_next_agent();
  }
  let_them_end();
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(active.exit_status(), 0) << testing::PrintToString(active.lines);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, ATenantIsStillEndedInTheOrderlyWay) {
  start_supervised();
  // A SIGTERM alone would not end it.
  Player& stubborn = start_tenant(tenant, {"sh", "-c", "trap '' TERM; echo up; exec sleep 1000"});
  wait("its start", [&] { return stubborn.said("up"); });
  wait_for_status(tenant, [](const auto& now) { return !now["active"].is_null(); });
  kill_agent();
  wait_for_next_agent();
  EXPECT_EQ(command({"stop", tenant}).status.exit_code, 0);
  wait_for_end(stubborn);
  EXPECT_EQ(stubborn.exit_status(), killed_by_signal);
}

TEST_F(AgentKilled, WhoIsStartedMeanwhileIsPlacedByTheNextOne) {
  start_supervised();
  kill_agent_for_a_while();
  Player& run = start_tenant(tenant, {"sh", "-c", "exit 7"});
  expect_no_agent();
  resume_supervisor();
  wait_for_end(run);
  EXPECT_EQ(run.exit_status(), 7) << run.actor->record().last_words;
}

TEST_F(AgentKilled, WhoJoinsMeanwhileJoinsTheNextOne) {
  start_supervised();
  std::vector<std::string> command = {"sh", "-c", R"(head -n 1; exec "$@")", "sh"};
  std::ranges::move(decode(), std::back_inserter(command));
  Player& active = start_tenant(tenant, std::move(command));
  wait_for_status(tenant, [](const auto& now) { return !now["active"].is_null(); });
  kill_agent_for_a_while();
  active.actor->tell("join");
  wait("its start", [&] { return active.said("join"); });
  expect_no_agent();
  resume_supervisor();
  wait_for_end(active);
  EXPECT_EQ(active.exit_status(), 0) << active.actor->record().last_words;
  wait_for_next_agent();
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, AShelfThatIsSilentMeanwhileHasNotLostWhatItHolds) {
  start_supervised();
  Player& active = start_active();
  wait_for_steps(3);
  const pid_t shelf = shelf_pid();
  send(shelf, SIGSTOP);
  kill_agent();
  wait_for_next_agent();
  Player& standby = start_tenant(tenant, decode(), {"--standby"});
  wait("a word of it", [&] { return agent_->said("does not say what it keeps"); });
  EXPECT_EQ(status_of(tenant)["phase"], "serving");
  send(shelf, SIGCONT);
  wait_for_status(tenant, [](const auto& now) { return now["standby_state"] == "ready"; });
  send(pid_of(tenant), SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
}

TEST_F(AgentKilled, SignalsAreTheProgramsOwnMeanwhile) {
  start_supervised();
  const std::string traps = "trap 'echo int; done=1' INT; trap 'echo term' TERM; echo up; ";
  Player& run =
      start_tenant(tenant, {"sh", "-c", traps + "while test -z $done; do sleep 0.05; done; exit 9"});
  wait("its start", [&] { return run.said("up"); });
  wait_for_status(tenant, [](const auto& now) { return !now["active"].is_null(); });
  kill_agent_for_a_while();
  run.actor->signal(SIGTERM);
  wait("its answer", [&] { return run.said("term"); });
  run.actor->signal(SIGINT);
  wait_for_end(run);
  EXPECT_EQ(run.exit_status(), 9);
  EXPECT_THAT(run.lines, testing::ElementsAre("up", "term", "int"));
  resume_supervisor();
  wait_for_next_agent();
}

}  // namespace
}  // namespace firebreak::tests
