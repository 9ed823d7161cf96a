// SPDX-License-Identifier: Apache-2.0
// The sampler's state rule: whatever an interrupted step left in the latents, the output is that of a run
// without interruption.
#include <gtest/gtest.h>

#include "tests/doubles/base/test_seed.h"
#include "tests/workloads/gpu_memory.h"
#include "workloads/denoise/denoise_workload.h"

namespace firebreak::workloads::denoise {
namespace {

using workloads::testing::SharedMemory;

constexpr std::uint64_t steps = 9;
constexpr std::uint64_t seed = 5;
constexpr Preset preset{.shape = {.width = 12, .height = 7, .channels = 8, .blocks = 1}, .steps = steps};

/// One process of the tenant: its own scratch memory over the tenant's kept memory.
struct Process {
  Process(const Gpu& on, SharedMemory& kept) : gpu(on), scratch(on.driver()) {
    workload = DenoiseWorkload::create(gpu, preset, steps, seed).value();
    EXPECT_TRUE(workload->allocate(kept, scratch));
  }
  void run(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step)
      EXPECT_TRUE(workload->queue_step(gpu, step)) << step;
  }
  std::vector<std::byte> state() const { return {workload->state().begin(), workload->state().end()}; }

  const Gpu& gpu;
  SharedMemory scratch;
  std::unique_ptr<Workload> workload;
};

std::string uninterrupted_output(const Gpu& gpu) {
  SharedMemory kept(gpu.driver());
  Process process(gpu, kept);
  process.run(0, steps);
  return process.workload->output(gpu).value();
}

std::string snapshot_name(std::uint64_t step) { return "snapshot-" + std::to_string(step % 2); }

class DenoiseResume : public ::testing::Test {
 protected:
  const Gpu gpu = workloads::testing::open_soft_gpu(ptx());
  std::mt19937_64 random{test_seed()};
};

TEST_F(DenoiseResume, TheOutputIsAPictureThatIsNotOfOneColour) {
  const std::string output = uninterrupted_output(gpu);
  const std::string header = "P6\n12 7\n255\n";
  ASSERT_EQ(output.size(), header.size() + 12 * 7 * 3);
  EXPECT_EQ(output.substr(0, header.size()), header);
  EXPECT_NE(output.find_first_not_of(output.back(), header.size()), std::string::npos);
  EXPECT_EQ(output, uninterrupted_output(gpu));
}

TEST_F(DenoiseResume, AnInterruptedStepNeverShows) {
  const std::string expected = uninterrupted_output(gpu);
  for (std::uint64_t interrupted = 1; interrupted <= steps; ++interrupted) {
    SharedMemory kept(gpu.driver());
    Process active(gpu, kept);
    active.run(0, interrupted - 1);
    const std::vector<std::byte> committed = active.state();
    active.run(interrupted, interrupted);
    scribble(gpu, kept.region("latents"), random);
    scribble(gpu, kept.region(snapshot_name(interrupted)), random);

    Process standby(gpu, kept);
    for (const auto& [name, region] : standby.scratch.regions()) scribble(gpu, region, random);
    ASSERT_TRUE(standby.workload->warm_up(gpu));
    ASSERT_TRUE(standby.workload->take_over(gpu, interrupted, committed));
    standby.run(interrupted, steps);
    EXPECT_EQ(standby.workload->output(gpu).value(), expected) << "interrupted in step " << interrupted;
  }
}

TEST_F(DenoiseResume, AMoveToAnotherContextNeverShows) {
  const std::string expected = uninterrupted_output(gpu);
  SharedMemory kept(gpu.driver());
  Process process(gpu, kept);
  EXPECT_EQ(workloads::testing::output_of_one_that_moves(*process.workload, gpu, ptx()), expected);
}

TEST_F(DenoiseResume, AnInterruptedStartIsRepeatedFromTheSeed) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  for (const auto& [name, region] : kept.regions()) scribble(gpu, region, random);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, 0, {}));
  standby.run(0, steps);
  EXPECT_EQ(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DenoiseResume, AFinishedRunOnlyHasToBeWritten) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, steps);
  scribble(gpu, kept.region("latents"), random);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, steps + 1, active.state()));
  EXPECT_EQ(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DenoiseResume, LosingTheCommittedSnapshotWouldShow) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, 4);
  const std::vector<std::byte> committed = active.state();
  scribble(gpu, kept.region(snapshot_name(4)), random);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, 5, committed));
  standby.run(5, steps);
  EXPECT_NE(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DenoiseResume, AStateThatDoesNotFitIsRefused) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, 3);
  EXPECT_FALSE(active.workload->take_over(gpu, 6, active.state()));
  EXPECT_FALSE(active.workload->take_over(gpu, 4, {}));
  auto other = DenoiseWorkload::create(gpu, preset, steps, seed + 1).value();
  ASSERT_TRUE(other->allocate(kept, active.scratch));
  EXPECT_FALSE(other->take_over(gpu, 4, active.state()));
}

}  // namespace
}  // namespace firebreak::workloads::denoise
