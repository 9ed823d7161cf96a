// SPDX-License-Identifier: Apache-2.0
/// The same seed is the same sequence of events, whatever the machine does meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

struct InjectSchedule : testing::Test {
  Sandbox sandbox;
  std::string path = sandbox.file("schedule.json");

  void write(const std::string& text) { std::ofstream(path) << text; }
  os::ProgramResult run(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"inject", "--json", "--schedule", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run("firebreak-lab", arguments, {{"FIREBREAK_SOFTGPU_DIR", sandbox.file("gpu")}});
  }
};

constexpr const char* left_to_chance = R"({"faults": [
  {"kinds": ["trap", "misaligned-store", "sigkill", "null-load"], "to_ms": 60, "times": 6},
  {"class": "mmu-non-replayable", "from_ms": 20, "to_ms": 40, "times": 2}]})";

TEST_F(InjectSchedule, TheSeedThatIsPrintedReplaysTheEvents) {
  write(left_to_chance);
  const auto first = run();
  EXPECT_TRUE(first.status.clean()) << first.output;
  const auto head = nlohmann::json::parse(first.output.substr(0, first.output.find('\n')), nullptr, false);
  ASSERT_TRUE(head.is_object()) << first.output;
  EXPECT_EQ(head["faults"], 8);
  const auto again = run({"--seed", head["seed"].dump()});
  EXPECT_EQ(first.output, again.output);
}

TEST_F(InjectSchedule, AnotherSeedIsAnotherSequence) {
  write(left_to_chance);
  EXPECT_NE(run({"--seed", "1"}).output, run({"--seed", "2"}).output);
}

TEST_F(InjectSchedule, EveryEventSaysWhatCameOfIt) {
  write(R"({"faults": [{"kind": "sigkill", "at_ms": 1}, {"kind": "trap", "at_ms": 0},
                       {"kind": "exit", "at_ms": 2}]})");
  const auto result = run({"--seed", "1"});
  EXPECT_TRUE(result.status.clean());
  EXPECT_EQ(
      result.output,
      "{\"seed\":1,\"faults\":3}\n"
      "{\"event\":1,\"at_ms\":0,\"kind\":\"trap\",\"into\":\"\",\"outcome\":\"CUDA_ERROR_LAUNCH_FAILED\"}\n"
      "{\"event\":2,\"at_ms\":1,\"kind\":\"sigkill\",\"into\":\"\",\"outcome\":\"ended by signal 9\"}\n"
      "{\"event\":3,\"at_ms\":2,\"kind\":\"exit\",\"into\":\"\",\"outcome\":\"exited with status 3\"}\n");
}

TEST_F(InjectSchedule, AFaultThatCannotBeRaisedIsSaidAndTheNextGoesOn) {
  write(R"({"faults": [{"kind": "trap", "at_ms": 0, "into": "decode"}, {"kind": "trap", "at_ms": 1}]})");
  const auto result = run({"--seed", "1", "--socket", sandbox.file("nobody.sock")});
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no firebreak agent"));
  EXPECT_THAT(result.output, HasSubstr("\"event\":2"));
  EXPECT_THAT(result.output, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(InjectSchedule, AMistakeInTheFileRaisesNothing) {
  write(R"({"faults": [{"kind": "tarp", "at_ms": 0}]})");
  const auto result = run();
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("fault 1: there is no kind 'tarp'"));
  path = sandbox.file("no-such-file.json");
  EXPECT_THAT(run().output, HasSubstr("no-such-file.json"));
}

}  // namespace
}  // namespace firebreak::tests
