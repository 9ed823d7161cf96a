// SPDX-License-Identifier: Apache-2.0
/// Tenants under a running agent, started by hand as an operator would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Tenants : testing::Test {
  Sandbox sandbox;
  std::string socket = sandbox.file("d/agent.sock");
  pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});

  void SetUp() override { sandbox.await_agent(socket); }
  void end_agent() {
    sandbox.signal(agent, SIGINT);
    EXPECT_TRUE(sandbox.wait(agent).clean());
    EXPECT_THAT(sandbox.left_behind(), IsEmpty());
  }
  std::vector<std::string> run_arguments(const std::string& tenant, std::vector<std::string> command,
                                         bool standby = false) {
    std::vector<std::string> arguments = {"run", "--socket", socket, "--name", tenant};
    if (standby) arguments.push_back("--standby");
    arguments.push_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
  }
  static std::string program(const std::string& name) { return std::string(FIREBREAK_PROGRAMS) + "/" + name; }
  /// Asks until the tenant is as wanted.
  void wait_until(const std::string& tenant, const std::function<bool(const nlohmann::json&)>& wanted) {
    (void)sandbox.await_tenant(socket, tenant, wanted);
  }
};

TEST_F(Tenants, RunPassesOnTheProgramsStatusAndOutput) {
  const auto result = sandbox.run("firebreak", run_arguments("shell", {"sh", "-c", "echo hello; exit 7"}));
  EXPECT_EQ(result.status.exit_code, 7);
  EXPECT_EQ(result.output, "hello\n");
  end_agent();
}

TEST_F(Tenants, AProgramThatCannotBeRunIsSaidAsShellsSayIt) {
  const std::string text = sandbox.file("text");
  std::ofstream(text) << "no program";
  const std::vector<std::pair<std::string, int>> cases = {
      {"no-such-program", 127}, {sandbox.file("none"), 127}, {text, 126}, {sandbox.file(""), 126}};
  for (const auto& [program, status] : cases) {
    const auto result = sandbox.run("firebreak", run_arguments("ghost", {program}));
    EXPECT_EQ(result.status.exit_code, status) << program;
    EXPECT_THAT(result.output, HasSubstr(program));
  }
  end_agent();
}

TEST_F(Tenants, WhatFirebreakItselfCannotDoHasAStatusOfItsOwn) {
  const auto nobody =
      sandbox.run("firebreak", {"run", "--socket", sandbox.file("none.sock"), "--wait-s", "0", "true"});
  EXPECT_EQ(nobody.status.exit_code, 125) << nobody.output;
  EXPECT_THAT(nobody.output, HasSubstr("no firebreak agent at"));
  const auto slip = sandbox.run("firebreak", {"run", "--piar", "--", "true"});
  EXPECT_EQ(slip.status.exit_code, 125) << slip.output;
  EXPECT_THAT(slip.output, HasSubstr("has no option --piar (did you mean --pair?)"));
  const auto command = sandbox.run("firebreak", {"rnu", "--", "true"});
  EXPECT_EQ(command.status.exit_code, 2) << command.output;
  EXPECT_THAT(command.output, HasSubstr("there is no command 'rnu' (did you mean run?)"));
  end_agent();
}

TEST_F(Tenants, RunWaitsForTheAgent) {
  const std::string socket = sandbox.file("late/agent.sock");
  const pid_t run = sandbox.start("firebreak", {"run", "--socket", socket, "--", "sh", "-c", "exit 7"});
  const pid_t late = sandbox.start("firebreakd", {"--directory", sandbox.file("late"), "--end-domains"});
  EXPECT_EQ(sandbox.wait(run).exit_code, 7);
  sandbox.signal(late, SIGINT);
  EXPECT_TRUE(sandbox.wait(late).clean());
  end_agent();
}

TEST_F(Tenants, SigtermToRunEndsTheTenant) {
  const pid_t run = sandbox.start("firebreak", run_arguments("sleeper", {"sleep", "1000"}));
  wait_until("sleeper", [](const auto& tenant) { return !tenant["active"].is_null(); });
  sandbox.signal(run, SIGTERM);
  EXPECT_EQ(sandbox.wait(run).signal, SIGTERM);
  end_agent();
}

TEST_F(Tenants, AStandbyThatNeverComesUpLeavesTheActiveServing) {
  const std::string output = sandbox.file("tokens");
  const pid_t active =
      sandbox.start("firebreak", run_arguments("llm", {program("firebreak-decode"), "--steps", "100",
                                                       "--pace-ms", "50", "--output", output}));
  wait_until("llm", [](const auto& tenant) { return tenant["phase"] == "serving"; });
  const auto standby = sandbox.run("firebreak", run_arguments("llm", {"false"}, true));
  EXPECT_EQ(standby.status.exit_code, 1);
  EXPECT_TRUE(sandbox.wait(active).clean());
  EXPECT_TRUE(os::RealKernel().read_file(output).has_value());
  end_agent();
}

TEST_F(Tenants, ATenantThatFinishesDismissesItsStandby) {
  const std::string output = sandbox.file("tokens");
  const std::vector<std::string> command = {
      program("firebreak-decode"), "--steps", "100", "--pace-ms", "80", "--output", output};
  const pid_t active = sandbox.start("firebreak", run_arguments("llm", command));
  wait_until("llm", [](const auto& tenant) { return tenant["phase"] == "serving"; });
  const pid_t standby = sandbox.start("firebreak", run_arguments("llm", command, true));
  EXPECT_TRUE(sandbox.wait(active).clean());
  EXPECT_TRUE(sandbox.wait(standby).clean());
  end_agent();
}

TEST_F(Tenants, AKilledActiveIsTakenOverAndItsOutputIsTheSame) {
  const std::string alone = sandbox.file("alone"), output = sandbox.file("tokens");
  // The active is slow, so that however busy the machine is the standby is up long before the end.
  const auto decode = [](const std::string& pace_ms, const std::string& path) {
    return std::vector<std::string>{
        program("firebreak-decode"), "--steps", "150", "--pace-ms", pace_ms, "--output", path};
  };
  const pid_t active = sandbox.start("firebreak", run_arguments("llm", decode("400", output)));
  wait_until("llm", [](const auto& tenant) { return tenant["phase"] == "serving"; });
  const pid_t standby = sandbox.start("firebreak", run_arguments("llm", decode("0", output), true));
  pid_t tenant_pid = 0;
  wait_until("llm", [&tenant_pid](const auto& tenant) {
    if (tenant["standby_state"] != "ready" || tenant["committed_steps"] < 5) return false;
    tenant_pid = tenant["active"]["pid"];
    return true;
  });
  os::RealKernel kernel;
  ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(tenant_pid).value(), SIGKILL).has_value());
  EXPECT_EQ(sandbox.wait(active).signal, SIGKILL);
  EXPECT_TRUE(sandbox.wait(standby).clean());
  end_agent();

  Sandbox other;
  ASSERT_TRUE(other
                  .run("firebreak-decode", {"--standalone", "--steps", "150", "--output", alone},
                       {{"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                        {"FIREBREAK_SOFTGPU_DIR", other.file("gpu")}})
                  .status.clean());
  EXPECT_EQ(kernel.read_file(output).value(), kernel.read_file(alone).value());
}

}  // namespace
}  // namespace firebreak::tests
