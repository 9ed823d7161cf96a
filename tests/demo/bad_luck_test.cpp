// SPDX-License-Identifier: Apache-2.0
/// Bad input and bad luck: one clear line with what to do, a non-zero exit status, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct BadLuck : testing::Test {
  Sandbox sandbox;

  void expect_complaint(const os::ProgramResult& result, const std::string& words, int status = 1) {
    EXPECT_EQ(result.status.exit_code, status) << result.output;
    EXPECT_THAT(result.output, HasSubstr(words));
    EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
    EXPECT_THAT(sandbox.left_behind(), IsEmpty());
  }

  /// Once it has so much that could be left behind it is at work; nothing of that stays.
  void interrupt(std::vector<std::string> arguments, std::size_t resources) {
    const pid_t program = sandbox.start("firebreak-lab", std::move(arguments));
    while (sandbox.left_behind().size() < resources) {
    }
    sandbox.signal(program, SIGTERM);
    EXPECT_EQ(sandbox.wait(program).exit_code, 1);
    EXPECT_THAT(sandbox.left_behind_at_last(), IsEmpty());
  }
};

TEST_F(BadLuck, AnUnknownFaultKindNamesTheOneThatWasMeant) {
  expect_complaint(sandbox.run("firebreak-lab", {"demo", "--fault", "misaligned-laod"}),
                   "did you mean 'misaligned-load'?");
  expect_complaint(sandbox.run("firebreak-lab", {"inject", "trep"}), "did you mean 'trap'?");
}

TEST_F(BadLuck, AnUnknownOptionIsRefused) {
  const auto result = sandbox.run("firebreak-lab", {"demo", "--falt", "trap"});
  EXPECT_NE(result.status.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("--falt"));
}

TEST_F(BadLuck, AnUnknownGpuIsRefused) {
  expect_complaint(sandbox.run("firebreak-lab", {"inject", "trap"}, {{"FIREBREAK_GPU", "quantum"}}),
                   "use auto, real or soft");
}

TEST_F(BadLuck, ARealGpuThatIsNotThereIsSaid) {
  if (std::ifstream("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has a real GPU";
  expect_complaint(sandbox.run("firebreak-lab", {"demo"}, {{"FIREBREAK_GPU", "real"}}),
                   "no real GPU: NVIDIA's driver is not loaded");
}

TEST_F(BadLuck, NobodyTakesTheSoftwareGpuUnasked) {
  if (std::ifstream("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has a real GPU";
  for (const char* asked : {"", "real"}) {
    expect_complaint(sandbox.run("firebreak", {"watch"}, {{"FIREBREAK_GPU", asked}}),
                     "no real GPU: NVIDIA's driver is not loaded");
  }
  expect_complaint(sandbox.run("firebreak", {"watch"}, {{"FIREBREAK_GPU", "auto"}}), "use real or soft", 2);
  expect_complaint(sandbox.run("firebreakd", {"--directory", sandbox.file("d")}, {{"FIREBREAK_GPU", "auto"}}),
                   "use real or soft");
}

TEST_F(BadLuck, AnAgentBeforeItsDriverWaitsAndSaysSo) {
  if (std::ifstream("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has a real GPU";
  const std::string socket = sandbox.file("d/agent.sock");
  const pid_t agent =
      sandbox.start("firebreakd", {"--directory", sandbox.file("d")}, {{"FIREBREAK_GPU", ""}});
  std::string said;
  while (said.find("the agent is") == std::string::npos) {
    said = sandbox.run("firebreak", {"status", "--socket", socket}).output;
  }
  EXPECT_THAT(said, HasSubstr("waiting for a GPU: NVIDIA's driver is not loaded"));
  const auto refused = sandbox.run("firebreak", {"run", "--socket", socket, "--name", "x", "--", "true"});
  EXPECT_EQ(refused.status.exit_code, 125);  // what `firebreak run` ends with of itself
  EXPECT_THAT(refused.output, HasSubstr("waiting for a GPU"));
  sandbox.signal(agent, SIGINT);
  EXPECT_EQ(sandbox.wait(agent).exit_code, 0);
  EXPECT_THAT(sandbox.left_behind(), IsEmpty());
}

TEST_F(BadLuck, TheOptionSaysWhichGpuBeforeTheEnvironmentDoes) {
  const std::string socket = sandbox.file("d/agent.sock");
  const pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d"), "--gpu-kind", "soft"},
                                    {{"FIREBREAK_GPU", "real"}});
  sandbox.await_agent(socket);
  sandbox.signal(agent, SIGINT);
  EXPECT_EQ(sandbox.wait(agent).exit_code, 0);
}

TEST_F(BadLuck, AnAgentThatIsNotRunningIsSaid) {
  const std::string socket = sandbox.file("nobody.sock");
  expect_complaint(sandbox.run("firebreak", {"status", "--json", "--socket", socket}), "start firebreakd");
  expect_complaint(
      sandbox.run("firebreak", {"run", "--socket", socket, "--name", "x", "--wait-s", "0", "--", "true"}),
      "start firebreakd", 125);  // what `firebreak run` ends with of itself
}

TEST_F(BadLuck, ASocketPathThatIsTooLongIsSaid) {
  const std::string socket = sandbox.file(std::string(120, 's'));
  expect_complaint(sandbox.run("firebreakd", {"--directory", sandbox.file("d"), "--socket", socket}),
                   "107 is the limit (choose a shorter directory)");
}

TEST_F(BadLuck, ADirectoryThatIsTooLongForMpsIsSaid) {
  const auto result = sandbox.run(
      "firebreakd", {"--directory", sandbox.file(std::string(100, 'd')), "--socket", sandbox.file("s")});
  expect_complaint(result, "MPS domain a");
}

TEST_F(BadLuck, ATenantOfAStrangeNameIsRefused) {
  const pid_t agent = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});
  const std::string socket = sandbox.file("d/agent.sock");
  os::ProgramResult result;
  do {
    result = sandbox.run("firebreak", {"run", "--socket", socket, "--name", "a/b", "--", "true"});
  } while (result.output.find("start firebreakd") != std::string::npos);
  EXPECT_EQ(result.status.exit_code, 125);
  EXPECT_THAT(result.output, HasSubstr("letters, digits"));
  sandbox.signal(agent, SIGINT);
  EXPECT_TRUE(sandbox.wait(agent).clean());
  EXPECT_THAT(sandbox.left_behind(), IsEmpty());
}

TEST_F(BadLuck, ASecondAgentOnTheSameSocketIsRefused) {
  const pid_t first = sandbox.start("firebreakd", {"--directory", sandbox.file("d")});
  const std::string socket = sandbox.file("d/agent.sock");
  sandbox.await_agent(socket);
  const auto second = sandbox.run("firebreakd", {"--directory", sandbox.file("e"), "--socket", socket});
  EXPECT_EQ(second.status.exit_code, 1) << second.output;
  EXPECT_TRUE(sandbox.run("firebreak", {"status", "--json", "--socket", socket}).status.clean());
  sandbox.signal(first, SIGINT);
  EXPECT_TRUE(sandbox.wait(first).clean());
  EXPECT_THAT(sandbox.left_behind(), IsEmpty());
}

TEST_F(BadLuck, AnAgentThatIsKilledLeavesNoDaemonsBehindWhereItIsAskedForThat) {
  const pid_t agent = sandbox.start("firebreakd", {"--end-domains", "--directory", sandbox.file("d")});
  const std::string socket = sandbox.file("d/agent.sock");
  sandbox.await_agent(socket);
  sandbox.signal(agent, SIGKILL);
  EXPECT_EQ(sandbox.wait(agent).signal, SIGKILL);
  // The daemons get their parent's death signal at its end; each takes a moment to be gone.
  EXPECT_THAT(sandbox.left_behind_at_last(), IsEmpty());
}

TEST_F(BadLuck, ADemoThatIsInterruptedLeavesNothingBehind) { interrupt({"demo", "--steps", "60"}, 4); }

TEST_F(BadLuck, ADemoOfAllKindsThatIsInterruptedPlaysNoFurtherOne) {
  interrupt({"demo", "--fault", "all", "--steps", "60"}, 4);
}

TEST_F(BadLuck, ASoakThatIsInterruptedLeavesNothingBehind) {
  // The agent, its daemons and some tenants.
  interrupt({"soak", "--workload", "scribble", "--steps", "3000"}, 12);
}

TEST_F(BadLuck, AResultThatCannotBeWrittenIsSaid) {
  const auto result = sandbox.run(
      "firebreak-lab", {"demo", "--steps", "60", "--parked", "none", "--json", "/nonexistent/demo.json"});
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("cannot write /nonexistent/demo.json"));
}

}  // namespace
}  // namespace firebreak::tests
