// SPDX-License-Identifier: Apache-2.0
/// `firebreak shutdown` and Ctrl-C: the explicit end, after which nothing is there and nothing is kept.
#include <signal.h>

#include "ground/os/processes.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

class ShutdownCommand : public SupervisedAgent {
 protected:
  void expect_nothing_is_left() {
    EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
    for (const char* path : {"d/agent.sock", "d/notify.sock", "d/a/pipe/control", "d/b/pipe/control"}) {
      EXPECT_FALSE(kernel_.read_file(sandbox_.file(path))) << path;
    }
  }
};

TEST_F(ShutdownCommand, NamesWhoIsThereAndEndsNothing) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  const auto refused = command({"shutdown"});
  EXPECT_EQ(refused.status.exit_code, 1);
  EXPECT_THAT(refused.output, testing::HasSubstr("tenants are there: llm (firebreak shutdown --force"));
  EXPECT_EQ(status_of(tenant)["standby_state"], "ready");
  let_them_end();
  for (Player* each : {&active, &standby}) {
    wait_for_end(*each);
    EXPECT_EQ(each->exit_status(), 0) << testing::PrintToString(each->lines);
  }
  expect_output_as_if_nothing_happened();
}

TEST_F(ShutdownCommand, ByForceEndsTenantsAndDaemonsAndLeavesNothing) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  Player& spinner = start_spinner("--stubborn");
  ASSERT_NE(shelf_pid(), 0);
  const auto ended = command({"shutdown", "--force", "--grace-ms", "100"});
  EXPECT_EQ(ended.status.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, testing::HasSubstr("the agent has ended for good: process "));
  EXPECT_THAT(ended.output, testing::HasSubstr("MPS took it off the GPU, SIGTERM, SIGKILL"));
  expect_supervisor_to_end();
  for (const Player* each : {&active, &standby, &spinner}) wait_for_end(*each);
  expect_nothing_is_left();
}

TEST_F(ShutdownCommand, WithoutTenantsAsksForNoForce) {
  start_agent();
  const auto ended = command({"shutdown"});
  EXPECT_EQ(ended.output, "the agent has ended for good: no tenant was there\n");
  EXPECT_EQ(ended.status.exit_code, 0);
  expect_supervisor_to_end();
  expect_nothing_is_left();
}

/// After a restart: what another agent has begun ends with this one.
TEST_F(ShutdownCommand, EndsWhatAnAgentBeforeHasStarted) {
  start_supervised();
  Player& active = start_active();
  tell_agent_to_end();
  wait_for_next_agent();
  EXPECT_EQ(command({"shutdown", "--force"}).status.exit_code, 0);
  expect_supervisor_to_end();
  wait_for_end(active);
  expect_nothing_is_left();
}

TEST_F(ShutdownCommand, IsWhatSigintMeans) {
  start_supervised();
  Player& active = start_active();
  // As from a keyboard: to both of them.
  const pid_t agent = agent_pid();
  send(agent_->actor->record().pid, SIGINT);
  send(agent, SIGINT);
  expect_supervisor_to_end();
  wait_for_end(active);
  expect_nothing_is_left();
}

}  // namespace
}  // namespace firebreak::tests
