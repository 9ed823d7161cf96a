// SPDX-License-Identifier: Apache-2.0
/// The agent is told to end while tenants compute, as by a restart or an upgrade of its service: they do not
/// notice, and the next agent goes on with them.
#include <signal.h>

#include "agent/service/service_manager.h"
#include "ground/os/file.h"
#include "shared/link/status_view.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr const char* faulter = "rogue";

class OrderlyRestart : public SupervisedAgent {
 protected:
  nlohmann::json domains() {
    return nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false)["domains"];
  }
  void restart() {
    tell_agent_to_end();
    wait_for_next_agent();
  }
  /// Exits as one that is to be followed by another.
  void end_by(int signal) {
    agent_->actor->signal(signal);
    wait_for_end(*agent_);
    EXPECT_EQ(agent_->exit_status(), agent::handed_over_status) << testing::PrintToString(agent_->lines);
    agent_ = nullptr;
  }
  void expect_output_after(Player& last) {
    wait_for_end(last);
    EXPECT_EQ(last.exit_status(), 0) << testing::PrintToString(last.lines);
    expect_output_as_if_nothing_happened();
  }
};

TEST_F(OrderlyRestart, LosesNothingAndAFaultAfterItIsSurvived) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const nlohmann::json domains_before = domains();
  const pid_t active_pid = pid_of(tenant);
  restart();
  const nlohmann::json after = status_of(tenant);
  EXPECT_EQ(after["phase"], "serving");
  EXPECT_EQ(after["standby_state"], "ready");
  EXPECT_EQ(after["active"]["pid"], active_pid);
  for (std::size_t i = 0; i < domains_before.size(); ++i) {
    EXPECT_EQ(domains()[i]["daemon_pid"], domains_before[i]["daemon_pid"]);
    EXPECT_EQ(domains()[i]["server_pids"], domains_before[i]["server_pids"]);
  }
  wait_for_steps(after["committed_steps"].get<std::uint64_t>() + 2);
  Player& culprit = start_tenant(faulter, {program("firebreak-lab"), "inject", "--wait", "misaligned-load"});
  wait("the rogue", [&] { return culprit.said("prepared"); });
  EXPECT_EQ(status_of(faulter)["active"]["domain"], after["active"]["domain"]);
  culprit.actor->tell("go");
  wait_for_end(active);
  EXPECT_NE(active.exit_status(), 0) << "it was to fall with its domain";
  expect_output_after(standby);
}

TEST_F(OrderlyRestart, FiveTimesAndThePairEndsInGoodOrder) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  for (int time = 0; time < 5; ++time) restart();
  EXPECT_EQ(status_of(tenant)["standby_state"], "ready");
  let_them_end();
  expect_output_after(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
}

/// Nobody else has restarted what was not kept; so what was told to run is adopted by the next agent.
TEST_F(OrderlyRestart, AGuardedTenantIsStillFollowedAndEndsAlone) {
  start_supervised();
  Player& neighbour = start_neighbour();
  const Player& spinner = start_spinner({}, {"--guard"});
  restart();
  const nlohmann::json after = status_of("spinner");
  EXPECT_EQ(after["guard"]["state"], "on") << after.dump();
  const auto stopped = command({"stop", "spinner"});
  EXPECT_EQ(stopped.status.exit_code, 0) << stopped.output;
  wait_for_end(spinner);
  expect_unharmed(neighbour);
}

TEST_F(OrderlyRestart, WithoutAServiceManagerTenantsComputeOnAndTheNextAgentUsesTheDomainsOn) {
  start_agent();
  Player& active = start_active();
  wait_for_steps(3);
  const nlohmann::json before = domains();
  end_by(SIGTERM);
  start_agent();
  EXPECT_EQ(domains()[0]["daemon_pid"], before[0]["daemon_pid"]);
  EXPECT_TRUE(status_of(tenant).is_null()) << "nobody has kept that there is such a tenant";
  end_by(SIGHUP);  // as when its terminal is gone
  let_them_end();
  expect_output_after(active);
  start_agent();
  EXPECT_EQ(domains()[0]["daemon_pid"], before[0]["daemon_pid"]);
}

/// Its supervisor is told to end, so there is nobody who keeps anything.
TEST_F(OrderlyRestart, OfTheSupervisorIsThatOfAnAgentWithoutOne) {
  start_supervised();
  Player& active = start_active();
  wait_for_steps(3);
  end_by(SIGTERM);
  let_them_end();
  expect_output_after(active);
  start_supervised();
}

}  // namespace
}  // namespace firebreak::tests
