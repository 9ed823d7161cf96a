// SPDX-License-Identifier: Apache-2.0
/// The agent hangs while a pair computes: its supervisor ends it and starts the next one, and tenants do not
/// notice. One that is only busy is left alone.
#include <signal.h>

#include <array>
#include <atomic>
#include <thread>

#include "shared/link/agent_link.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr int status_of_killed = 128 + SIGKILL;

constexpr const char* limit_s = "1";

class AgentHung : public SupervisedAgent {
 protected:
  void start_watched() { start_supervised({"--watchdog-s", limit_s}); }
  void expect_taken_over(Player& active, Player& standby) {
    wait_for_end(active);
    wait_for_end(standby);
    EXPECT_EQ(active.exit_status(), status_of_killed);
    EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
    expect_output_as_if_nothing_happened();
  }
};

TEST_F(AgentHung, IsReplacedAndThenTheActiveIsTakenOver) {
  start_watched();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t hung = agent_pid();
  hang_agent();
  wait_for_next_agent();
  EXPECT_NE(agent_pid(), hung);
  EXPECT_TRUE(agent_->said("hangs")) << testing::PrintToString(agent_->lines);
  const nlohmann::json before = status_of(tenant);
  EXPECT_EQ(before["phase"], "serving");
  EXPECT_EQ(before["standby_state"], "ready");
  wait_for_steps(before["committed_steps"].get<std::uint64_t>() + 2);
  send(pid_of(tenant), SIGKILL);
  expect_taken_over(active, standby);
}

/// Nobody sees the active's end before there is another agent.
TEST_F(AgentHung, WhileTheActiveDies) {
  start_watched();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t active_pid = pid_of(tenant);
  hang_agent();
  send(active_pid, SIGKILL);
  expect_taken_over(active, standby);
  wait_for_next_agent();
}

TEST_F(AgentHung, ThreeTimesAndThePairEndsInGoodOrder) {
  start_watched();
  Player& active = start_active();
  Player& standby = start_standby();
  for (int time = 0; time < 3; ++time) {
    hang_agent();
    wait_for_next_agent();
    EXPECT_EQ(status_of(tenant)["standby_state"], "ready");
  }
  let_them_end();
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(active.exit_status(), 0) << testing::PrintToString(active.lines);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
}

/// Its signal does not reach who is stopped.
TEST_F(AgentHung, IsNotWaitedForWhereItsSupervisorIsToldToEnd) {
  start_watched();
  send(agent_pid(), SIGSTOP);
  agent_->actor->signal(SIGTERM);
  wait_for_end(*agent_);
  EXPECT_EQ(agent_->exit_status(), status_of_killed) << testing::PrintToString(agent_->lines);
  agent_ = nullptr;
  start_supervised();
}

TEST_F(AgentHung, WhoIsKeptBusyByManyIsNot) {
  start_watched();
  Player& active = start_active();
  Player& standby = start_standby();
  const pid_t agent = agent_pid();
  std::array<std::thread, 8> askers;
  std::atomic<int> unanswered = 0;
  for (auto& asker : askers) {
    asker = std::thread([&] {
      const auto link = link::AgentLink::connect(socket_);
      for (int asked = 0; asked < 1'500; ++asked) {
        if (!link || !(*link)->status()) ++unanswered;
      }
    });
  }
  for (auto& asker : askers) asker.join();
  EXPECT_EQ(unanswered, 0);
  EXPECT_EQ(agent_pid(), agent);
  EXPECT_FALSE(agent_->said("hangs")) << testing::PrintToString(agent_->lines);
  let_them_end();
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
}

}  // namespace
}  // namespace firebreak::tests
