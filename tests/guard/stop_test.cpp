// SPDX-License-Identifier: Apache-2.0
// A tenant that is told to end in mid-kernel: MPS takes it off the GPU first, and nobody else notices.
#include <signal.h>

#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

class Stop : public AgentOnStage {
 protected:
  Stop() { start_agent(); }
  /// The program is told to end by a signal while it is in that call, and has no plan of its own for that.
  void expect_no_return_from(const std::string& call) {
    const Player& spinner = start_spinner(call, {"--guard"});
    spinner.actor->signal(SIGTERM);
    wait_for_end(spinner);
    EXPECT_EQ(spinner.exit_status(), 128 + SIGTERM);
    EXPECT_FALSE(spinner.said("came back")) << testing::PrintToString(spinner.lines);
  }
};

TEST_F(Stop, InMidKernelSparesTheNeighbour) {
  Player& neighbour = start_neighbour();
  const Player& spinner = start_spinner();
  const auto stopped = command({"stop", "spinner"});
  EXPECT_EQ(stopped.status.exit_code, 0);
  EXPECT_THAT(stopped.output, HasSubstr("spinner has ended: process "));
  EXPECT_THAT(stopped.output, HasSubstr(": MPS took it off the GPU, SIGTERM\n"));
  wait_for_end(spinner);
  EXPECT_EQ(spinner.exit_status(), 128 + SIGTERM);
  EXPECT_TRUE(status_of("spinner").is_null());
  expect_unharmed(neighbour);
}

TEST_F(Stop, OfOneThatDoesNotListenEndsInAKillThatHarmsNobody) {
  Player& neighbour = start_neighbour();
  const Player& spinner = start_spinner("--stubborn");
  const auto stopped = command({"stop", "spinner", "--grace-ms", "10"});
  EXPECT_EQ(stopped.status.exit_code, 0);
  EXPECT_THAT(stopped.output, HasSubstr("MPS took it off the GPU, SIGTERM, SIGKILL"));
  wait_for_end(spinner);
  EXPECT_EQ(spinner.exit_status(), 128 + SIGKILL);
  expect_unharmed(neighbour);
}

TEST_F(Stop, OfAStoppedProcessLeavesMpsAlone) {
  const Player& spinner = start_spinner();
  const pid_t pid = pid_of("spinner");
  send(pid, SIGSTOP);
  // It stops when each of its threads has come by.
  ask_until("its stop", [&] {
    const auto state = kernel_.read_file("/proc/" + std::to_string(pid) + "/stat").value();
    return state.find(") T ") != std::string::npos;
  });
  const auto stopped = command({"stop", "spinner", "--grace-ms", "10"});
  EXPECT_EQ(stopped.status.exit_code, 0);
  EXPECT_THAT(stopped.output, HasSubstr("MPS not asked, since it is stopped, SIGTERM, SIGKILL"));
  wait_for_end(spinner);
}

TEST_F(Stop, BySigtermInMidKernelSparesTheNeighbour) {
  Player& neighbour = start_neighbour();
  const Player& spinner = start_spinner({}, {"--guard"});
  spinner.actor->signal(SIGTERM);
  wait_for_end(spinner);
  EXPECT_EQ(spinner.exit_status(), 128 + SIGTERM);
  expect_unharmed(neighbour);
}

// It slept on, wrote its files, and ended with 0.
TEST_F(Stop, BySigtermItsSleepDoesNotComeBack) { expect_no_return_from("--sleeps"); }

// It was told CUDA_ERROR_MPS_CLIENT_TERMINATED.
TEST_F(Stop, BySigtermTheDriverDoesNotAnswerIt) { expect_no_return_from("--synchronizes"); }

TEST_F(Stop, BySigtermToRunWorksWithoutAnAgentToo) {
  agent_->actor->signal(SIGINT);
  wait_for_end(*agent_);
  start_agent({"--end-domains"});
  const Player& spinner = start_spinner();
  agent_->actor->signal(SIGKILL);
  wait_for_end(*agent_);
  agent_ = nullptr;
  spinner.actor->signal(SIGTERM);
  wait_for_end(spinner);
  EXPECT_NE(spinner.exit_status(), 0);
  // The domains' processes end by themselves once their agent is gone, and nobody says when.
  EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
}

TEST_F(Stop, OfATenantEndsItsStandbyTooAndPromotesNobody) {
  const std::vector<std::string> decode = {
      program("firebreak-decode"), "--steps", "100000", "--pace-ms", "20", "--output",
      sandbox_.file("tokens")};
  const Player& active = start_tenant("llm", decode);
  wait_for_status("llm", [](const auto& tenant) { return tenant["phase"] == "serving"; });
  const Player& standby = start_tenant("llm", decode, {"--standby"});
  wait_for_status("llm", [](const auto& tenant) { return tenant["standby_state"] == "ready"; });
  const auto stopped = command({"stop", "llm"});
  EXPECT_EQ(stopped.status.exit_code, 0) << stopped.output;
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_TRUE(status_of("llm").is_null());
  EXPECT_FALSE(kernel_.read_file(sandbox_.file("tokens")));  // nobody went on to the end
}

TEST_F(Stop, OfNobodyIsSaid) {
  const auto stopped = command({"stop", "nobody"});
  EXPECT_EQ(stopped.status.exit_code, 1);
  EXPECT_THAT(stopped.output, HasSubstr("there is no tenant 'nobody'"));
}

}  // namespace
}  // namespace firebreak::tests
