// SPDX-License-Identifier: Apache-2.0
// The examples are whole tenants: killed, the standby of one writes what it would have written; and what one
// makes others read.
#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::IsEmpty;

struct Example : testing::Test {
  Sandbox sandbox;
  std::string socket = sandbox.file("d/agent.sock");
  std::string output = sandbox.file("numbers");
  pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});

  void SetUp() override { sandbox.await_agent(socket); }
  pid_t run(const std::string& pause_ms, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"run", "--socket", socket, "--name", "numbers"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string program = std::string(FIREBREAK_PROGRAMS) + "/firebreak-example";
    arguments.insert(arguments.end(), {"--", program, output, pause_ms});
    return sandbox.start("firebreak", arguments);
  }
  /// Asks until the tenant is as wanted.
  nlohmann::json wait_for(const std::function<bool(const nlohmann::json&)>& wanted) {
    return sandbox.await_tenant(socket, "numbers", wanted);
  }
  static std::string expected_numbers() {
    std::ostringstream text;
    for (std::uint32_t i = 0, number = 1; i < 300; ++i)
      text << (number = number * 1664525u + 1013904223u) << '\n';
    return text.str();
  }
  void end_agent() {
    sandbox.signal(agent, SIGINT);
    EXPECT_TRUE(sandbox.wait(agent).clean());
    EXPECT_THAT(sandbox.left_behind(), IsEmpty());
  }
};

TEST_F(Example, AloneItWritesItsNumbers) {
  EXPECT_TRUE(sandbox.wait(run("0")).clean());
  EXPECT_EQ(os::RealKernel().read_file(output).value(), expected_numbers());
  end_agent();
}

TEST_F(Example, KilledItsStandbyWritesTheSame) {
  // The active is slow, so that however busy the machine is the standby is up long before the end.
  const pid_t active = run("500");
  wait_for([](const auto& tenant) { return tenant["phase"] == "serving"; });
  const pid_t standby = run("0", {"--standby"});
  const auto tenant = wait_for(
      [](const auto& now) { return now["standby_state"] == "ready" && now["committed_steps"] >= 3; });
  os::RealKernel kernel;
  ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(tenant["active"]["pid"]).value(), SIGKILL));
  EXPECT_EQ(sandbox.wait(active).signal, SIGKILL);
  EXPECT_TRUE(sandbox.wait(standby).clean());
  EXPECT_EQ(kernel.read_file(output).value(), expected_numbers());
  end_agent();
}

TEST_F(Example, WeightsAreMadeOnceAndReadByTwoTenants) {
  const auto run_weights = [this](const std::string& name, const std::vector<std::string>& of = {}) {
    std::vector<std::string> arguments = {"run",
                                          "--socket",
                                          socket,
                                          "--name",
                                          name,
                                          "--",
                                          std::string(FIREBREAK_PROGRAMS) + "/firebreak-example-weights"};
    arguments.insert(arguments.end(), of.begin(), of.end());
    const auto ended = sandbox.run("firebreak", arguments);
    EXPECT_TRUE(ended.status.clean()) << ended.output;
    return ended.output;
  };
  EXPECT_EQ(run_weights("maker"), "");
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < 1u << 20; ++i) sum += i * 2654435761u;
  for (const char* reader : {"one", "other"}) {
    EXPECT_EQ(run_weights(reader, {"maker"}),
              "the weights of maker at 540000000000 add up to " + std::to_string(sum) + "\n");
  }
  end_agent();
}

}  // namespace
}  // namespace firebreak::tests
