// SPDX-License-Identifier: Apache-2.0
// The decoder's state rule: whatever an interrupted step left behind, the output is that of a run without
// interruption.
#include <gtest/gtest.h>

#include <set>

#include "tests/doubles/base/test_seed.h"
#include "tests/workloads/gpu_memory.h"
#include "workloads/decode/decode_workload.h"

namespace firebreak::workloads::decode {
namespace {

using workloads::testing::SharedMemory;

constexpr std::uint64_t steps = 24;
constexpr std::uint64_t seed = 5;
/// Requests are short, so that pages go from one to the next within the run.
constexpr Preset preset{.shape = {.layers = 2,
                                  .hidden = 32,
                                  .heads = 4,
                                  .key_heads = 2,
                                  .head_size = 8,
                                  .intermediate = 64,
                                  .vocabulary = 128,
                                  .streams = 2,
                                  .page_tokens = 2,
                                  .pages = 10},
                        .traffic = {.prompt_tokens_min = 2,
                                    .prompt_tokens_max = 4,
                                    .answer_tokens_min = 2,
                                    .answer_tokens_max = 6},
                        .steps = steps};

/// One process of the tenant: its own scratch memory over the tenant's kept memory.
struct Process {
  Process(const Gpu& on, SharedMemory& kept) : gpu(on), scratch(on.driver()) {
    workload = DecodeWorkload::create(gpu, preset, steps, seed).value();
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

/// The bfloat16 numbers of one layer's keys that belong to committed positions.
std::set<std::uint64_t> committed_elements(const std::vector<std::byte>& state) {
  Schedule schedule(preset.shape, preset.traffic, seed);
  EXPECT_TRUE(schedule.restore(state));
  const Shape& shape = preset.shape;
  std::set<std::uint64_t> elements;
  for (const StreamState& stream : schedule.state().streams) {
    for (std::uint32_t t = 0; t < stream.length; ++t) {
      for (std::uint32_t head = 0; head < shape.key_heads; ++head) {
        const std::uint64_t page = stream.pages[t / shape.page_tokens];
        const std::uint64_t row = (page * shape.key_heads + head) * shape.page_tokens + t % shape.page_tokens;
        for (std::uint32_t i = 0; i < shape.head_size; ++i) elements.insert(row * shape.head_size + i);
      }
    }
  }
  return elements;
}

void scribble_cache(const Gpu& gpu, const workloads::testing::Region& region,
                    const std::set<std::uint64_t>& committed, std::mt19937_64& random) {
  auto values = workloads::testing::download<std::uint16_t>(gpu, region);
  const std::uint64_t layer_elements = values.size() / preset.shape.layers;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (!committed.contains(i % layer_elements)) values[i] = static_cast<std::uint16_t>(random());
  }
  workloads::testing::upload(gpu, region, values);
}

std::string uninterrupted_output(const Gpu& gpu) {
  SharedMemory kept(gpu.driver());
  Process process(gpu, kept);
  process.run(0, steps);
  return process.workload->output(gpu).value();
}

class DecodeResume : public ::testing::Test {
 protected:
  const Gpu gpu = workloads::testing::open_soft_gpu(ptx());
  std::mt19937_64 random{test_seed()};
};

TEST_F(DecodeResume, TheOutputAnswersSeveralRequestsAndDependsOnTheSeed) {
  const std::string output = uninterrupted_output(gpu);
  EXPECT_NE(output.find("stream 1 request 2 "), std::string::npos) << output;
  EXPECT_EQ(output, uninterrupted_output(gpu));
}

TEST_F(DecodeResume, AnInterruptedStepNeverShows) {
  const std::string expected = uninterrupted_output(gpu);
  for (const std::uint64_t interrupted : {1, 2, 3, 9, 14, 15, 23, 24}) {
    SharedMemory kept(gpu.driver());
    Process active(gpu, kept);
    active.run(0, interrupted - 1);
    const std::vector<std::byte> committed = active.state();
    active.run(interrupted, interrupted);
    const auto elements = committed_elements(committed);
    scribble_cache(gpu, kept.region("keys"), elements, random);
    scribble_cache(gpu, kept.region("values"), elements, random);
    scribble(gpu, kept.region("tokens"), random,
             (interrupted - 1) * preset.shape.streams * sizeof(std::uint32_t));

    Process standby(gpu, kept);
    for (const auto& [name, region] : standby.scratch.regions()) scribble(gpu, region, random);
    ASSERT_TRUE(standby.workload->warm_up(gpu));
    ASSERT_TRUE(standby.workload->take_over(gpu, interrupted, committed));
    standby.run(interrupted, steps);
    EXPECT_EQ(standby.workload->output(gpu).value(), expected) << "interrupted in step " << interrupted;
  }
}

TEST_F(DecodeResume, AMoveToAnotherContextNeverShows) {
  const std::string expected = uninterrupted_output(gpu);
  SharedMemory kept(gpu.driver());
  Process process(gpu, kept);
  EXPECT_EQ(workloads::testing::output_of_one_that_moves(*process.workload, gpu, ptx()), expected);
}

TEST_F(DecodeResume, AnInterruptedStartIsRepeatedFromTheSeed) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  for (const auto& [name, region] : kept.regions()) scribble(gpu, region, random);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, 0, {}));
  standby.run(0, steps);
  EXPECT_EQ(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DecodeResume, AFinishedRunOnlyHasToBeWritten) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, steps);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, steps + 1, active.state()));
  EXPECT_EQ(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DecodeResume, LosingCommittedCacheWouldShow) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, 14);
  const std::vector<std::byte> committed = active.state();
  scribble_cache(gpu, kept.region("keys"), {}, random);
  scribble_cache(gpu, kept.region("values"), {}, random);
  Process standby(gpu, kept);
  ASSERT_TRUE(standby.workload->take_over(gpu, 15, committed));
  standby.run(15, steps);
  EXPECT_NE(standby.workload->output(gpu).value(), uninterrupted_output(gpu));
}

TEST_F(DecodeResume, AStateThatDoesNotFitTheStepIsRefused) {
  SharedMemory kept(gpu.driver());
  Process active(gpu, kept);
  active.run(0, 3);
  EXPECT_FALSE(active.workload->take_over(gpu, 6, active.state()));
  EXPECT_FALSE(active.workload->take_over(gpu, 4, {}));
}

}  // namespace
}  // namespace firebreak::workloads::decode
