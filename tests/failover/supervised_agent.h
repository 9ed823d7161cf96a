// SPDX-License-Identifier: Apache-2.0
/// An agent that is started again whenever the test kills it, and tenants that write down what they computed.
#pragma once

#include <string>
#include <vector>

#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {

class SupervisedAgent : public AgentOnStage {
 protected:
  static constexpr int steps = 150;
  static constexpr const char* tenant = "llm";

  /// Nothing of the supervisor is left either; whoever still goes slowly ends.
  void TearDown() override;

  /// Nobody but the test ends its agent, unless the arguments say so.
  void start_supervised(std::vector<std::string> arguments = {});
  /// The agent itself, not its supervisor.
  pid_t agent_pid();
  pid_t supervisor_pid() const;
  pid_t second_supervisor_pid();
  /// Another process takes its place, and starts the next agent. Returns when that is there.
  void kill_supervisor();
  /// The first of the agent's shelves, which the next agent has as well.
  pid_t shelf_pid();
  /// Returns at once; nobody is asked anything until wait_for_next_agent().
  void kill_agent();
  /// The process that keeps the agent's rights: without it the agent makes room for the next one. Returns as
  /// kill_agent() does.
  void kill_keeper(pid_t keeper);
  /// Its loop hangs, and goes on under no circumstances. Returns as kill_agent() does.
  void hang_agent();
  /// The agent is told to end, as by a service manager that restarts it. Returns as kill_agent() does.
  void tell_agent_to_end();
  void wait_for_next_agent();
  /// With the agent that is there, as `firebreak shutdown` asks for it: the supervisor ends by itself.
  void expect_supervisor_to_end();
  /// And there is none until resume_supervisor(): its supervisor stands still.
  void kill_agent_for_a_while();
  void resume_supervisor();
  /// Asked often enough for whoever was started before to have found that out as well.
  void expect_no_agent();

  /// Goes as fast as it can.
  std::vector<std::string> decode() const;
  /// Goes slowly, and does not end before let_them_end(): so a test has the time that it needs, however busy
  /// the machine is.
  std::vector<std::string> decode_slowly() const;
  void let_them_end() const;
  /// Goes slowly.
  Player& start_active();
  /// Returns when it is ready to take over; then it goes as fast as it can.
  Player& start_standby();
  Player& start_standby(std::vector<std::string> command);
  void wait_for_steps(std::uint64_t committed);
  /// Asks until the agent has nothing of the tenant any more.
  void wait_until_unknown();
  /// What the tenant wrote is what a program writes to which nothing has happened.
  void expect_output_as_if_nothing_happened();

  std::string output_ = sandbox_.file("tokens");
  std::string told_to_end_ = sandbox_.file("end");

  std::ptrdiff_t agents_seen() const;

 private:
  void end_second_supervisor();

  std::ptrdiff_t agents_wanted_ = 0;
  pid_t supervisor_ = 0;  ///< who has taken the first one's place; 0: nobody
};

}  // namespace firebreak::tests
