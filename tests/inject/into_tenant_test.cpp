// SPDX-License-Identifier: Apache-2.0
/// A fault inside the process of a tenant that runs under the agent, and only where the tenant allows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Sandbox::Environment allowed{{"FIREBREAK_ALLOW_INJECTION", "1"}};

struct InjectInto : testing::Test {
  Sandbox sandbox;
  std::string socket = sandbox.file("d/agent.sock");
  pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});

  void SetUp() override { sandbox.await_agent(socket); }
  void TearDown() override {
    sandbox.signal(agent, SIGINT);
    EXPECT_TRUE(sandbox.wait(agent).clean());
    EXPECT_THAT(sandbox.left_behind(), IsEmpty());
  }
  pid_t start(bool standby, const Sandbox::Environment& environment, const std::string& steps = "150") {
    std::vector<std::string> arguments = {"run", "--socket", socket, "--name", "llm"};
    if (standby) arguments.push_back("--standby");
    for (const std::string& word : {std::string("--"), std::string(FIREBREAK_PROGRAMS) + "/firebreak-decode",
                                    std::string("--steps"), steps, std::string("--pace-ms"),
                                    std::string("10"), std::string("--output"), sandbox.file("tokens")}) {
      arguments.push_back(word);
    }
    return sandbox.start("firebreak", arguments, environment);
  }
  /// Asks until the tenant is as wanted.
  void wait_until(const std::function<bool(const nlohmann::json&)>& wanted) {
    (void)sandbox.await_tenant(socket, "llm", wanted);
  }
  os::ProgramResult inject(const std::string& kind, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"inject", kind, "--into", "llm", "--socket", socket, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run("firebreak-lab", arguments);
  }
};

bool serves(const nlohmann::json& tenant) { return tenant["committed_steps"] >= 2; }

TEST_F(InjectInto, ATenantThatDoesNotAllowItGoesOn) {
  const pid_t active = start(false, {}, "100");
  wait_until(serves);
  const auto result = inject("trap");
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("FIREBREAK_ALLOW_INJECTION=1"));
  EXPECT_TRUE(sandbox.wait(active).clean());
}

TEST_F(InjectInto, NobodyOfThatName) {
  const auto result = inject("trap");
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no tenant 'llm'"));
}

TEST_F(InjectInto, TheActiveFaultsAndItsStandbyFinishes) {
  const pid_t active = start(false, allowed);
  wait_until(serves);
  const pid_t standby = start(true, {});
  wait_until([](const auto& tenant) { return tenant["standby_state"] == "ready" && serves(tenant); });
  const auto result = inject("misaligned-load", {"--at-launch", "3"});
  EXPECT_TRUE(result.status.clean()) << result.output;
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_GT(json["raised_ns"], 0);
  EXPECT_FALSE(sandbox.wait(active).clean());
  EXPECT_TRUE(sandbox.wait(standby).clean());
}

TEST_F(InjectInto, AScheduleReachesTenantsToo) {
  const std::string path = sandbox.file("schedule.json");
  std::ofstream(path) << R"({"faults": [{"kind": "sigkill", "at_ms": 0, "into": "llm"}]})";
  const pid_t active = start(false, allowed, "100000");
  wait_until(serves);
  const auto result = sandbox.run(
      "firebreak-lab", {"inject", "--schedule", path, "--seed", "1", "--socket", socket, "--json"});
  EXPECT_TRUE(result.status.clean()) << result.output;
  EXPECT_THAT(result.output, HasSubstr(R"("into":"llm","outcome":"raised")"));
  EXPECT_EQ(sandbox.wait(active).signal, SIGKILL);
}

}  // namespace
}  // namespace firebreak::tests
