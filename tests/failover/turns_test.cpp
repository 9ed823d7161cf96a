// SPDX-License-Identifier: Apache-2.0
/// Tenants that take turns: whoever is held, dies, hands over or loses its agent meanwhile computes what it
/// would have computed alone.
#include <signal.h>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

class TakeTurns : public SupervisedAgent {
 protected:
  static constexpr const char* image = "image";

  /// The picture is more urgent than the text for as long as it is drawn, which ends with let_them_end().
  void start_both() {
    start_supervised({"--turns", "priority", "--turn-max-ms", "200"});
    drawing_ =
        &start_tenant(image, draw({"--pace-ms", "20", "--slow-until", told_to_end_}), {"--class", "live"});
    wait_for_status(image, [](const auto& now) { return now["turn"]["state"] == "goes"; });
    writing_ = &start_active();
    wait_until_held();
  }
  std::vector<std::string> draw(std::vector<std::string> more) const {
    more.insert(more.begin(), {program("firebreak-denoise"), "--steps", "30", "--output", picture_});
    return more;
  }
  void wait_until_held() {
    wait_for_status(tenant, [](const auto& now) {
      return now["turn"]["state"] == "waits" && now["turn"]["class"] == "batch";
    });
  }
  void expect_good_end(const Player& player) {
    wait_for_end(player);
    EXPECT_EQ(player.exit_status(), 0) << testing::PrintToString(player.lines);
  }
  void expect_picture_as_if_nothing_happened() {
    Sandbox other;
    const std::string alone = other.file("alone");
    ASSERT_TRUE(other
                    .run("firebreak-denoise", {"--standalone", "--steps", "30", "--output", alone},
                         {{"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                          {"FIREBREAK_SOFTGPU_DIR", other.file("gpu")}})
                    .status.clean());
    EXPECT_TRUE(kernel_.read_file(picture_).value_or("") == kernel_.read_file(alone).value());
  }

  std::string picture_ = sandbox_.file("picture");
  Player* drawing_ = nullptr;
  Player* writing_ = nullptr;
};

TEST_F(TakeTurns, WhoIsHeldGoesOnWhenTheOtherIsDoneAndNoByteIsAnother) {
  start_both();
  wait_for_steps(3);  // it is held again and again, and does not starve
  wait_until_held();
  let_them_end();
  expect_good_end(*drawing_);
  expect_good_end(*writing_);
  expect_output_as_if_nothing_happened();
  expect_picture_as_if_nothing_happened();
}

TEST_F(TakeTurns, AnActiveThatIsKilledInAHoldHasASuccessor) {
  start_both();
  Player& standby = start_standby();
  wait_until_held();
  send(pid_of(tenant), SIGKILL);
  wait_for_status(tenant, [](const auto& now) { return now["epoch"] == 1 && now["phase"] == "serving"; });
  let_them_end();
  expect_good_end(*drawing_);
  expect_good_end(standby);
  expect_output_as_if_nothing_happened();
  expect_picture_as_if_nothing_happened();
}

TEST_F(TakeTurns, WhoIsHeldHandsOverAllTheSame) {
  start_both();
  Player& standby = start_standby(decode_slowly());
  wait_until_held();
  const auto asked = command({"hand-over", tenant});
  EXPECT_TRUE(asked.status.clean()) << asked.output;
  let_them_end();
  expect_good_end(standby);
  expect_good_end(*writing_);
  expect_output_as_if_nothing_happened();
}

TEST_F(TakeTurns, WhoHasTheTurnIsKilledAndTheOtherGoesOn) {
  start_both();
  send(pid_of(image), SIGKILL);
  wait_for_status(tenant, [](const auto& now) { return now["turn"]["state"] == "goes"; });
  let_them_end();
  expect_good_end(*writing_);
  expect_output_as_if_nothing_happened();
}

TEST_F(TakeTurns, AgentsThatAreKilledInAHoldLeaveNobodyWaiting) {
  start_both();
  for (int i = 0; i < 3; ++i) {
    kill_agent();
    wait_for_next_agent();
    wait_until_held();
  }
  kill_agent_for_a_while();
  let_them_end();
  expect_good_end(*writing_);  // no agent is there to let it go
  resume_supervisor();
  wait_for_next_agent();
  expect_good_end(*drawing_);
  expect_output_as_if_nothing_happened();
  expect_picture_as_if_nothing_happened();
}

}  // namespace
}  // namespace firebreak::tests
