// SPDX-License-Identifier: Apache-2.0
/// The agent has given up the right to look at other users' processes; a process that it started keeps it.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "ground/os/looks.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr unsigned sys_ptrace = 19;

std::string field_of(const std::string& folder, const std::string& name) {
  std::istringstream status(os::read_small_file(folder + "/status").value_or(""));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

bool may_trace(const std::string& folder, const char* set) {
  return ((std::stoull(field_of(folder, set), nullptr, 16) >> sys_ptrace) & 1U) != 0;
}

class AgentRights : public SupervisedAgent {
 protected:
  void expect_taken_over(Player& active, Player& standby) {
    send(pid_of(tenant), SIGKILL);
    wait_for_end(active);
    wait_for_end(standby);
    EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
    expect_output_as_if_nothing_happened();
  }
  /// 0: it has none.
  pid_t keeper_of(pid_t agent) {
    for (const pid_t each : os::children_of(kernel_, agent)) {
      const auto command = os::read_small_file(os::proc_folder(each) + "/cmdline").value_or("");
      if (command.find("--rights-keeper") != std::string::npos) return each;
    }
    return 0;
  }
  os::RealKernel kernel_;
};

TEST_F(AgentRights, TheKeeperHasTheRightToTraceAndTheAgentHasNot) {
  if (!may_trace("/proc/self", "CapEff")) GTEST_SKIP() << "nobody here has that right";
  start_supervised();
  const pid_t agent = agent_pid();
  const std::string folder = os::proc_folder(agent);
  const std::vector<std::string> threads = kernel_.list_directory(folder + "/task").value();
  for (const std::string& thread : threads) {
    for (const char* set : {"CapPrm", "CapEff", "CapInh"})
      EXPECT_FALSE(may_trace(folder + "/task/" + thread, set)) << set;
  }
  EXPECT_TRUE(!may_trace(folder, "CapBnd") || field_of(folder, "NoNewPrivs") == "1");
  const pid_t keeper = keeper_of(agent);
  ASSERT_NE(keeper, 0);
  EXPECT_TRUE(may_trace(os::proc_folder(keeper), "CapEff"));
  EXPECT_EQ(field_of(os::proc_folder(keeper), "CapPrm"), "0000000000080004");
  EXPECT_EQ(field_of(os::proc_folder(keeper), "NoNewPrivs"), "1");
}

TEST_F(AgentRights, AnAgentWhoseKeeperIsKilledIsReplacedAndNobodyNotices) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t agent = agent_pid();
  const pid_t keeper = keeper_of(agent);
  ASSERT_NE(keeper, 0);
  kill_keeper(keeper);
  wait_for_next_agent();
  const pid_t next = agent_pid();
  EXPECT_NE(next, agent);
  EXPECT_NE(keeper_of(next), 0);
  EXPECT_TRUE(agent_->said("the process that looks at others has ended"));
  expect_taken_over(active, standby);
}

TEST_F(AgentRights, AnAgentThatNobodyReplacesGoesOnWithoutItsKeeper) {
  start_agent();
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t agent = agent_->actor->record().pid;
  const pid_t keeper = keeper_of(agent);
  ASSERT_NE(keeper, 0);
  send(keeper, SIGKILL);
  wait("its word", [&] { return agent_->said("nobody starts the next agent"); });
  EXPECT_EQ(keeper_of(agent), 0);
  expect_taken_over(active, standby);
}

/// As in a container that was not given the right.
TEST_F(AgentRights, AnAgentThatNeverHadTheRightWorksWithoutIt) {
  if (!may_trace("/proc/self", "CapBnd")) GTEST_SKIP() << "nobody here has that right";
  start_agent({}, {"setpriv", "--inh-caps", "-sys_ptrace", "--bounding-set", "-sys_ptrace"});
  const pid_t keeper = keeper_of(agent_->actor->record().pid);
  ASSERT_NE(keeper, 0);
  EXPECT_FALSE(may_trace(os::proc_folder(keeper), "CapPrm"));
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  expect_taken_over(active, standby);
}

/// Where others' processes are not seen without the right, it is kept. Members of the group see them (hidepid
/// of proc(5)), and root's is the one where none is named.
TEST_F(AgentRights, IsKeptWhereProcHidesOthers) {
  if (!may_trace("/proc/self", "CapEff") || !may_unshare({"--mount"}))
    GTEST_SKIP() << "nobody may mount here";
  start_agent({}, {"unshare", "--mount", "sh", "-c",
                   R"(mount -t proc -o hidepid=invisible,gid=65534 proc /proc && exec "$@")", "sh"});
  const pid_t agent = agent_->actor->record().pid;
  EXPECT_TRUE(may_trace(os::proc_folder(agent), "CapEff"));
  EXPECT_TRUE(agent_->said("CAP_SYS_PTRACE is kept"));
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  expect_taken_over(active, standby);
}

}  // namespace
}  // namespace firebreak::tests
