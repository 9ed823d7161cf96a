// SPDX-License-Identifier: Apache-2.0
/// A standby that waits in a small context, and has a full one soon after its promotion.
#include <signal.h>

#include <algorithm>

#include "ground/base/units.h"
#include "softgpu/machine/shared_gpu.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr std::uint64_t small_at_most_mib = 80;
constexpr std::uint64_t full_at_least_mib = 254;

class SmallStandby : public SupervisedAgent {
 protected:
  Player& start_standby_that_tells(std::vector<std::string> more = {}) {
    std::vector<std::string> command = decode_slowly();
    command.emplace_back("--progress");
    command.insert(command.end(), more.begin(), more.end());
    return start_standby(std::move(command));
  }
  /// As NVML says it.
  std::uint64_t memory_mib(pid_t pid) const {
    const auto gpu = softgpu::SharedGpu::open(sandbox_.file("d/softgpu")).value();
    const auto all = gpu->processes();
    const auto found = std::ranges::find(all, pid, &softgpu::GpuProcess::pid);
    return found == all.end() ? 0 : found->used_bytes / mib;
  }
  void expect_good_end(Player& active, Player& standby) {
    let_them_end();
    wait_for_end(active);
    wait_for_end(standby);
    EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
    expect_output_as_if_nothing_happened();
  }
};

TEST_F(SmallStandby, TakesLittleMemoryAndMovesToAFullContextBetweenTwoSteps) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby_that_tells();
  const pid_t standby_pid = status_of(tenant)["standby"]["pid"];
  EXPECT_LE(memory_mib(standby_pid), small_at_most_mib);
  EXPECT_GE(memory_mib(pid_of(tenant)), full_at_least_mib);
  wait_for_steps(3);
  send(pid_of(tenant), SIGKILL);
  wait("its full context", [&] { return standby.said("moved"); });
  EXPECT_GE(memory_mib(standby_pid), full_at_least_mib);
  expect_good_end(active, standby);
  const auto first_with = [&](const char* word) {
    return std::ranges::find_if(standby.lines,
                                [word](const std::string& line) { return line.starts_with(word); });
  };
  EXPECT_LT(first_with("promoted "), first_with("resumed "));
  EXPECT_LT(first_with("resumed "), first_with("moved "));
  EXPECT_LT(first_with("moved "), first_with("step 150 "));
}

TEST_F(SmallStandby, MayHaveAFullContextFromTheStart) {
  start_supervised();
  Player& active = start_active();
  Player& standby = start_standby_that_tells({"--standby-sms", "0"});
  EXPECT_GE(memory_mib(status_of(tenant)["standby"]["pid"]), full_at_least_mib);
  wait_for_steps(3);
  send(pid_of(tenant), SIGKILL);
  expect_good_end(active, standby);
  EXPECT_FALSE(standby.said("moved"));
}

}  // namespace
}  // namespace firebreak::tests
