// SPDX-License-Identifier: Apache-2.0
#include "tests/failover/supervised_agent.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ground/os/processes.h"

namespace firebreak::tests {

void SupervisedAgent::TearDown() {
  let_them_end();
  end_second_supervisor();
  AgentOnStage::TearDown();
  EXPECT_FALSE(std::filesystem::exists(sandbox_.file("d/notify.sock")));
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

void SupervisedAgent::start_supervised(std::vector<std::string> arguments) {
  // Whoever is not told otherwise ends an agent that a busy machine kept waiting, which a test did not mean.
  if (std::ranges::count(arguments, "--watchdog-s") == 0)
    arguments.insert(arguments.end(), {"--watchdog-s", "0"});
  arguments.emplace_back("--supervised");
  start_agent(std::move(arguments));
  agents_wanted_ = 1;
}

pid_t SupervisedAgent::agent_pid() {
  std::vector<pid_t> agents = os::children_of(kernel_, supervisor_pid());
  std::erase(agents, second_supervisor_pid());
  EXPECT_EQ(agents.size(), 1u) << "a supervisor has one agent";
  return agents.empty() ? 0 : agents.front();
}

pid_t SupervisedAgent::supervisor_pid() const {
  return supervisor_ == 0 ? agent_->actor->record().pid : supervisor_;
}

pid_t SupervisedAgent::second_supervisor_pid() {
  for (const pid_t pid : os::children_of(kernel_, supervisor_pid())) {
    const std::string command = kernel_.read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
    if (command.find("--second-supervisor") != std::string::npos) return pid;
  }
  return 0;
}

void SupervisedAgent::kill_supervisor() {
  const pid_t second = second_supervisor_pid();
  ASSERT_NE(second, 0);
  send(supervisor_pid(), SIGKILL);
  wait_for_end(*agent_);
  agent_ = nullptr;
  supervisor_ = second;
  wait("the next agent", [&] { return command({"status"}).status.exit_code == 0; });
}

void SupervisedAgent::end_second_supervisor() {
  if (supervisor_ == 0) return;
  send(supervisor_, SIGINT);
  wait("the second supervisor's end",
       [&] { return !os::is_alive(kernel_.read_file(os::proc_folder(supervisor_) + "/stat").value_or("")); });
}

pid_t SupervisedAgent::shelf_pid() {
  for (const pid_t pid : os::children_of(kernel_, agent_pid())) {
    const std::string command = kernel_.read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
    if (command.find("--shelf") != std::string::npos) return pid;
  }
  ADD_FAILURE() << "the agent has no shelf";
  return 0;
}

void SupervisedAgent::kill_agent() {
  send(agent_pid(), SIGKILL);
  ++agents_wanted_;
}

void SupervisedAgent::kill_keeper(pid_t keeper) {
  send(keeper, SIGKILL);
  ++agents_wanted_;
}

void SupervisedAgent::hang_agent() {
  send(agent_pid(), SIGSTOP);
  ++agents_wanted_;
}

void SupervisedAgent::tell_agent_to_end() {
  send(agent_pid(), SIGTERM);
  ++agents_wanted_;
}

void SupervisedAgent::expect_supervisor_to_end() {
  wait_for_end(*agent_);
  EXPECT_EQ(agent_->exit_status(), 0) << testing::PrintToString(agent_->lines);
  agent_ = nullptr;
}

void SupervisedAgent::wait_for_next_agent() {
  wait("the next agent", [&] { return agents_seen() >= agents_wanted_; });
}

void SupervisedAgent::kill_agent_for_a_while() {
  const pid_t agent = agent_pid();
  send(supervisor_pid(), SIGSTOP);
  send(agent, SIGKILL);
  ++agents_wanted_;
}

void SupervisedAgent::resume_supervisor() { send(supervisor_pid(), SIGCONT); }

void SupervisedAgent::expect_no_agent() {
  for (int asked = 0; asked < 5; ++asked) EXPECT_EQ(command({"status"}).status.exit_code, 1);
}

std::ptrdiff_t SupervisedAgent::agents_seen() const {
  return std::ranges::count_if(
      agent_->lines, [](const std::string& line) { return line.find(", listening at ") != line.npos; });
}

std::vector<std::string> SupervisedAgent::decode() const {
  return {program("firebreak-decode"), "--steps", std::to_string(steps), "--output", output_};
}

/// A step in between stays one in which a hand-over is heard of, for a minute.
std::vector<std::string> SupervisedAgent::decode_slowly() const {
  std::vector<std::string> command = decode();
  command.insert(command.end(), {"--pace-ms", "400", "--slow-until", told_to_end_});
  return command;
}

void SupervisedAgent::let_them_end() const { std::ofstream(told_to_end_) << "now"; }

Player& SupervisedAgent::start_active() {
  Player& active = start_tenant(tenant, decode_slowly());
  wait_for_status(tenant, [](const auto& now) { return now["phase"] == "serving"; });
  return active;
}

Player& SupervisedAgent::start_standby() { return start_standby(decode()); }

Player& SupervisedAgent::start_standby(std::vector<std::string> command) {
  Player& standby = start_tenant(tenant, std::move(command), {"--standby"});
  wait_for_status(tenant, [](const auto& now) { return now["standby_state"] == "ready"; });
  return standby;
}

void SupervisedAgent::wait_for_steps(std::uint64_t committed) {
  wait_for_status(tenant, [committed](const auto& now) { return now["committed_steps"] >= committed; });
}

void SupervisedAgent::wait_until_unknown() {
  ask_until("no tenant", [&] { return status_of(tenant).is_null(); });
}

void SupervisedAgent::expect_output_as_if_nothing_happened() {
  Sandbox other;
  const std::string alone = other.file("alone");
  ASSERT_TRUE(other
                  .run("firebreak-decode",
                       {"--standalone", "--steps", std::to_string(steps), "--output", alone},
                       {{"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                        {"FIREBREAK_SOFTGPU_DIR", other.file("gpu")}})
                  .status.clean());
  EXPECT_TRUE(kernel_.read_file(output_).value_or("") == kernel_.read_file(alone).value());
}

}  // namespace firebreak::tests
