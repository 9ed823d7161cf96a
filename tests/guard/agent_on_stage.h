// SPDX-License-Identifier: Apache-2.0
/// An agent, tenants under `firebreak run`, and others, all on the software GPU and directed by one test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stage/stage.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {

/// A process and what it said.
struct Player {
  stage::Actor* actor = nullptr;
  std::vector<std::string> lines;
  bool said(const std::string& words) const;
  int exit_status() const;  ///< as a shell says it
};

class AgentOnStage : public testing::Test {
 protected:
  AgentOnStage();
  /// Ends the agent for good, which must end in good order and leave nothing.
  void TearDown() override;

  /// `by`: a program that becomes it, and its arguments.
  void start_agent(std::vector<std::string> arguments = {}, std::vector<std::string> by = {});
  Player& start(std::vector<std::string> command, Sandbox::Environment extra = {});
  /// Under `firebreak run`, with further arguments for it.
  Player& start_tenant(const std::string& name, std::vector<std::string> command,
                       std::vector<std::string> run_arguments = {});
  /// Runs short kernels until it is told "end". It has been adopted.
  Player& start_neighbour(const std::string& name = "neighbour");
  /// Keeps one endless kernel on the GPU. "--stubborn": it ignores SIGTERM; "--queue": more work waits;
  /// "--finite": the kernel has ended; "--streams": 200 others have had a kernel each;
  /// "--copies": a copy and a fill wait for ever instead; "--beside": a short kernel and a copy have ended,
  /// in streams that wait for each other; "--stray": it is launched when somebody tells it to, and strays
  /// behind the end of 2 MiB first. It has been adopted.
  Player& start_spinner(const std::string& argument = {}, std::vector<std::string> run_arguments = {});
  os::ProgramResult command(std::vector<std::string> arguments);

  void wait(const std::string& what, const std::function<bool()>& done);
  void wait_for_end(const Player& player);
  /// Asks again and again, with a pause, for what nobody tells us. The test's own time limit bounds it; it
  /// fails once whoever started the test has ended.
  void ask_until(const std::string& what, const std::function<bool()>& holds);
  /// The neighbour has seen no error, and says so.
  void expect_unharmed(Player& neighbour);
  nlohmann::json status_of(const std::string& tenant);
  /// Asks until the tenant is as wanted.
  void wait_for_status(const std::string& tenant, const std::function<bool(const nlohmann::json&)>& wanted);
  /// Until the agent follows its active: the program runs before that, and says so.
  void wait_until_adopted(const std::string& tenant);
  pid_t pid_of(const std::string& tenant) { return status_of(tenant)["active"]["pid"]; }
  void send(pid_t pid, int signal);
  /// Whether this machine lets us make such namespaces; in a chroot some cannot be.
  bool may_unshare(const std::vector<std::string>& options);
  static std::string program(const std::string& name) { return std::string(FIREBREAK_PROGRAMS) + "/" + name; }

  os::RealKernel kernel_;
  SystemClock clock_;
  Sandbox sandbox_;
  Sandbox::Environment environment_;  ///< of everybody, besides the sandbox's
  std::string socket_ = sandbox_.file("d/agent.sock");
  std::vector<std::unique_ptr<Player>> players_;
  std::unique_ptr<stage::Stage> stage_;
  Player* agent_ = nullptr;

 private:
  pid_t started_by_ = ::getppid();
};

}  // namespace firebreak::tests
