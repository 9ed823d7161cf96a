// SPDX-License-Identifier: Apache-2.0
/// A tenant in a parked domain whose kernel fills the GPU, and so shares the multiprocessor that the
/// exception halts: it goes on since the agent has the GPU take turns for its other domain. Without turns it
/// does not.
#include <signal.h>

#include "ground/os/processes.h"
#include "softgpu/machine/shared_gpu.h"
#include "tests/parking/parked_domain.h"

namespace firebreak::tests {
namespace {

class HaltedMultiprocessorWhole : public ParkedDomainWhole {
 protected:
  /// Only a turn, or the end of the domain, lets kernels go on.
  void start_parking_without_limit(const std::string& park_s = long_enough) {
    environment_.emplace_back("FIREBREAK_SOFTGPU_HALT_MS", "endless");
    start_parking(park_s);
  }
  /// The agent's client in domain b does nothing, whatever it is told: so the GPU takes no turns.
  void stop_turns() {
    wait_for_parking("ready", 1);
    for (const pid_t pid : os::children_of(kernel_, agent_pid())) {
      const std::string of = "/proc/" + std::to_string(pid);
      const bool is_client =
          kernel_.read_file(of + "/cmdline").value_or("").find("parking-client") != std::string::npos;
      const bool is_of_b =
          kernel_.read_file(of + "/environ").value_or("").find("/b/pipe") != std::string::npos;
      if (is_client && is_of_b) client_of_b_ = pid;
    }
    ASSERT_NE(client_of_b_, 0);
    send(client_of_b_, SIGSTOP);
  }
  void allow_turns() { send(client_of_b_, SIGCONT); }

  softgpu::HaltedKernels halted_kernels() {
    return softgpu::SharedGpu::open(sandbox_.file("d/softgpu")).value()->halted_kernels();
  }
  void wait_until_large_stands_still() {
    ask_until("a kernel that stands still", [&] { return halted_kernels().stood_still != 0; });
  }

 private:
  pid_t client_of_b_ = 0;
};

TEST_F(HaltedMultiprocessorWhole, TheAgentsTurnsLetALargeKernelGoOnWhileTheDomainIsHeld) {
  start_parking_without_limit();
  wait_for_parking("ready", 1);
  Player& one = start_checker("one");
  Player& large = start_large();
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  large.actor->tell("go");
  expect_all_its_words(large);
  EXPECT_EQ(parking_state(), "held");
  let_them_end();
  expect_right(one);
}

TEST_F(HaltedMultiprocessorWhole, WithoutTurnsItStandsStillBesideSmallKernelsThatGoOn) {
  start_parking_without_limit();
  stop_turns();
  Player& one = start_checker("one");
  Player& brief = start_brief();
  Player& large = start_large();
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  large.actor->tell("go");
  wait_until_large_stands_still();
  end_brief();
  expect_right(brief);
  EXPECT_FALSE(large.said("right"));
  EXPECT_EQ(halted_kernels().thawed, 0u);
  EXPECT_EQ(parking_state(), "held");
  allow_turns();
  expect_all_its_words(large);
  EXPECT_EQ(halted_kernels().thawed, 1u);
  EXPECT_EQ(parking_state(), "held");
  let_them_end();
  expect_right(one);
}

TEST_F(HaltedMultiprocessorWhole, WithoutTurnsItStandsStillUntilTheDomainFalls) {
  start_parking_without_limit("1");
  stop_turns();
  Player& large = start_large();
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  large.actor->tell("go");
  wait_for_end(large);
  EXPECT_FALSE(large.said("right"));
  EXPECT_TRUE(large.said("CUDA_ERROR_MISALIGNED_ADDRESS")) << testing::PrintToString(large.lines);
  EXPECT_EQ(halted_kernels().thawed, 0u);
  allow_turns();
}

// 4 s on an H100.
TEST_F(HaltedMultiprocessorWhole, WithoutTurnsItGoesOnAtTheDriversLimit) {
  start_parking();
  stop_turns();
  Player& one = start_checker("one");
  Player& large = start_large();
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  large.actor->tell("go");
  expect_all_its_words(large);
  EXPECT_EQ(halted_kernels().thawed, 0u);
  EXPECT_EQ(parking_state(), "held");
  allow_turns();
  let_them_end();
  expect_right(one);
}

}  // namespace
}  // namespace firebreak::tests
