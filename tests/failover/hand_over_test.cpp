// SPDX-License-Identifier: Apache-2.0
/// An active that can work on becomes a standby: where the operator wants it so, and where it was taken for
/// faulted.
#include <fmt/format.h>
#include <signal.h>

#include "shared/link/status_view.h"
#include "softgpu/machine/shared_gpu.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

class HandOver : public SupervisedAgent {
 protected:
  void start_both() {
    start_supervised();
    // Who was taken for faulted comes back with its next commit, or is ended.
    std::vector<std::string> briskly = decode();
    briskly.insert(briskly.end(), {"--pace-ms", "40", "--slow-until", told_to_end_});
    first_ = &start_tenant(tenant, briskly);
    wait_for_status(tenant, [](const auto& now) { return now["phase"] == "serving"; });
    second_ = &start_standby(briskly);
    first_pid_ = pid_of(tenant);
    second_pid_ = status_of(tenant)["standby"]["pid"];
    wait_for_steps(3);
  }
  /// `active` serves, and the other one could take over.
  void wait_for_turn(pid_t active, pid_t standby) {
    wait_for_status(tenant, [&](const auto& now) {
      return now["phase"] == "serving" && now["standby_state"] == "ready" && now["active"]["pid"] == active &&
             now["standby"]["pid"] == standby;
    });
  }
  /// Of an active's domain the agent may still be asking for it.
  pid_t server_of(const std::string& domain) {
    for (;;) {
      const auto status = link::parse_status(command({"status", "--json"}).output);
      if (!status.servers.at(domain).empty()) return status.servers.at(domain).front();
    }
  }
  void expect_good_end(const Player& player) {
    let_them_end();
    wait_for_end(player);
    EXPECT_EQ(player.exit_status(), 0) << testing::PrintToString(player.lines);
  }

  Player* first_ = nullptr;
  Player* second_ = nullptr;
  pid_t first_pid_ = 0;
  pid_t second_pid_ = 0;
};

TEST_F(HandOver, GoesOverAndBackAndThenTheStandbyOfThenTakesOver) {
  start_both();
  const auto there = command({"hand-over", tenant});
  EXPECT_TRUE(there.status.clean()) << there.output;
  EXPECT_THAT(there.output, HasSubstr(fmt::format("llm goes on in process {} at step ", second_pid_)));
  wait_for_turn(second_pid_, first_pid_);
  const auto back = command({"hand-over", tenant});
  EXPECT_TRUE(back.status.clean()) << back.output;
  wait_for_turn(first_pid_, second_pid_);
  send(first_pid_, SIGKILL);
  expect_good_end(*second_);
  expect_output_as_if_nothing_happened();
}

TEST_F(HandOver, WithoutAStandbyTheActiveGoesOn) {
  start_supervised();
  Player& active = start_active();
  const auto asked = command({"hand-over", tenant});
  EXPECT_EQ(asked.status.exit_code, 1);
  EXPECT_THAT(asked.output, HasSubstr("no standby that is ready"));
  expect_good_end(active);
  expect_output_as_if_nothing_happened();
}

TEST_F(HandOver, AnActiveThatWasTakenForFaultedBecomesTheStandby) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a step takes 0.13 s and more: nobody joins again within the 0.25 s that the agent waits";
#endif
  start_both();
  const std::string domain = status_of(tenant)["active"]["domain"];
  const auto gpu = softgpu::SharedGpu::open(sandbox_.file("d/softgpu")).value();
  gpu->post_kmsg(0, fmt::format("NVRM: Xid (PCI:0000:00:05): 43, pid={}, name=nvidia-cuda-mps, Ch 00000008",
                                server_of(domain)));
  wait_for_turn(second_pid_, first_pid_);
  EXPECT_FALSE(first_->actor->ended());
  send(second_pid_, SIGKILL);
  expect_good_end(*first_);
  expect_output_as_if_nothing_happened();
}

}  // namespace
}  // namespace firebreak::tests
