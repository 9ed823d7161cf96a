// SPDX-License-Identifier: Apache-2.0
/// Nobody is left of a tenant: what becomes of its memory, and who may go on with it.
#include <signal.h>

#include <sstream>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

class BothKilled : public SupervisedAgent {
 protected:
  /// Both at once; the agent sees it.
  void kill_both(Player& active, Player& standby) {
    const nlohmann::json now = status_of(tenant);
    send(now["standby"]["pid"], SIGKILL);
    send(now["active"]["pid"], SIGKILL);
    wait_for_end(active);
    wait_for_end(standby);
  }
};

TEST_F(BothKilled, WhoIsStartedAnewWithinTheLeaseGoesOn) {
  start_supervised({"--lease-s", "1000"});
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(5);
  const std::uint64_t committed = status_of(tenant)["committed_steps"];
  kill_both(active, standby);
  wait_for_status(tenant, [](const auto& now) { return now["phase"] == "lost"; });
  EXPECT_GT(status_of(tenant)["memory_bytes"], 0U);
  kill_agent();  // which changes nothing
  wait_for_next_agent();
  EXPECT_EQ(status_of(tenant)["phase"], "lost");

  auto command = decode();
  command.emplace_back("--progress");
  Player& next = start_tenant(tenant, command);
  wait_for_end(next);
  EXPECT_EQ(next.exit_status(), 0) << testing::PrintToString(next.lines) << next.actor->record().last_words;
  ASSERT_FALSE(next.lines.empty());
  std::string word;
  std::uint64_t first_step = 0;
  std::istringstream(next.lines.front()) >> word >> first_step;
  EXPECT_GE(first_step, committed) << next.lines.front();
  expect_output_as_if_nothing_happened();
}

TEST_F(BothKilled, AfterTheLeaseTheMemoryIsReleased) {
  start_supervised({"--lease-s", "0.2"});
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(2);
  kill_both(active, standby);
  wait_until_unknown();
}

TEST_F(BothKilled, TheLeaseOfWhoWasLostGoesOnWithTheNextAgent) {
  start_supervised({"--lease-s", "2"});
  Player& active = start_active();
  wait_for_steps(2);
  const pid_t active_pid = pid_of(tenant);
  kill_agent();
  send(active_pid, SIGKILL);
  wait_for_end(active);
  wait_for_next_agent();
  wait_until_unknown();
}

using Quota = SupervisedAgent;

TEST_F(Quota, WhoWantsMoreIsTold) {
  start_supervised({"--quota-mib", "1"});
  std::vector<std::string> arguments = {"run", "--socket", socket_, "--name", tenant, "--"};
  for (std::string& word : decode()) arguments.push_back(std::move(word));
  const auto result = sandbox_.run("firebreak", std::move(arguments));
  EXPECT_FALSE(result.status.clean());
  EXPECT_THAT(result.output, testing::HasSubstr("quota"));
  wait_until_unknown();
}

}  // namespace
}  // namespace firebreak::tests
