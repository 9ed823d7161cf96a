// SPDX-License-Identifier: Apache-2.0
/// Tenants under a running agent, started by hand as an operator would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Tenants : testing::Test {
  Sandbox sandbox;
  std::string socket = sandbox.file("d/agent.sock");
  pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});

  void SetUp() override {
    while (!sandbox.run("firebreak", {"status", "--json", "--socket", socket}).status.clean()) {
    }
  }
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
  nlohmann::json status() {
    return nlohmann::json::parse(sandbox.run("firebreak", {"status", "--json", "--socket", socket}).output,
                                 nullptr, false);
  }
  /// Asks until the tenant is as wanted; the test's own time limit bounds it.
  void wait_until(const std::string& tenant, const std::function<bool(const nlohmann::json&)>& wanted) {
    for (;;) {
      const nlohmann::json now = status();
      for (const auto& entry : now["tenants"]) {
        if (entry["name"] == tenant && wanted(entry)) return;
      }
    }
  }
};

TEST_F(Tenants, RunPassesOnTheProgramsStatusAndOutput) {
  const auto result = sandbox.run("firebreak", run_arguments("shell", {"sh", "-c", "echo hello; exit 7"}));
  EXPECT_EQ(result.status.exit_code, 7);
  EXPECT_EQ(result.output, "hello\n");
  end_agent();
}

TEST_F(Tenants, WhatIsReadOfATenantsStandardErrorIsPassedOn) {
  // Who is left behind with the same standard error keeps nobody waiting.
  const std::string script = "seq 200000 >&2; sleep 1000 & echo $! >> " + sandbox.file("left") +
                             "; printf 'no line end' >&2; exit 7";
  const auto arguments = run_arguments("shell", {"sh", "-c", script});
  const auto untouched = sandbox.run("firebreak", arguments);
  const auto read = sandbox.run("firebreak", arguments, {{"CUDA_COREDUMP_SHOW_PROGRESS", "1"}});
  EXPECT_EQ(read.status.exit_code, 7);
  EXPECT_EQ(read.output.size(), untouched.output.size());
  EXPECT_TRUE(read.output == untouched.output);
  os::RealKernel kernel;
  std::istringstream left(kernel.read_file(sandbox.file("left")).value());
  for (pid_t pid = 0; left >> pid;) {
    EXPECT_TRUE(kernel.send_signal(kernel.pidfd_open(pid).value(), SIGKILL));
  }
  end_agent();
}

TEST_F(Tenants, AProgramThatIsNotThereIsSaid) {
  const auto result = sandbox.run("firebreak", run_arguments("ghost", {"no-such-program"}));
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no-such-program"));
  end_agent();
}

TEST_F(Tenants, SigtermToRunEndsTheTenant) {
  const pid_t run = sandbox.start("firebreak", run_arguments("sleeper", {"sleep", "1000"}));
  wait_until("sleeper", [](const auto& tenant) { return !tenant["active"].is_null(); });
  sandbox.signal(run, SIGTERM);
  EXPECT_EQ(sandbox.wait(run).exit_code, 128 + SIGTERM);
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
  EXPECT_EQ(sandbox.wait(active).exit_code, 128 + SIGKILL);
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
