// SPDX-License-Identifier: Apache-2.0
// The fence's adversary finds a single word that somebody else wrote, in every region, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/gpu_memory.h"
#include "workloads/scribble/scribble_workload.h"

namespace firebreak::workloads::scribble {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using workloads::testing::SharedMemory;

constexpr Preset preset{.words = 64, .rounds = 3, .steps = 20};
constexpr const char* clean = "no stray write\n";

/// One process of the tenant: its own scratch memory over the tenant's kept memory.
struct Process {
  Process(const Gpu& on, SharedMemory& kept, std::uint64_t nonce) : gpu(on), scratch(on.driver()) {
    workload = ScribbleWorkload::create(gpu, preset, preset.steps, nonce).value();
    EXPECT_TRUE(workload->allocate(kept, scratch));
    EXPECT_TRUE(workload->warm_up(gpu));
  }
  void run(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step)
      EXPECT_TRUE(workload->queue_step(gpu, step)) << step;
  }
  std::vector<std::byte> state() const { return {workload->state().begin(), workload->state().end()}; }
  std::string output() { return workload->output(gpu).value(); }

  const Gpu& gpu;
  SharedMemory scratch;
  std::unique_ptr<Workload> workload;
};

class ScribbleFinds : public ::testing::Test {
 protected:
  void write_one_word(const std::string& region) {
    std::vector<std::uint64_t> words = workloads::testing::download<std::uint64_t>(gpu, kept.region(region));
    words.front() ^= 1;
    workloads::testing::upload(gpu, kept.region(region), words);
  }

  const Gpu gpu = workloads::testing::open_soft_gpu(ptx());
  SharedMemory kept{gpu.driver()};
};

TEST_F(ScribbleFinds, NothingWhereNobodyElseWrites) {
  Process alone(gpu, kept, 1);
  alone.run(0, preset.steps);
  EXPECT_EQ(alone.output(), clean);
}

TEST_F(ScribbleFinds, NothingWhereTheOnlyOneMovesToAnotherContext) {
  Process alone(gpu, kept, 1);
  EXPECT_EQ(workloads::testing::output_of_one_that_moves(*alone.workload, gpu, ptx()), clean);
}

TEST_F(ScribbleFinds, NothingOfAnActiveThatStoppedBeforeTheFirstWrite) {
  Process active(gpu, kept, 1);
  active.run(0, 7);
  const auto committed = active.state();
  active.run(8, 9);
  Process successor(gpu, kept, 2);
  ASSERT_TRUE(successor.workload->take_over(gpu, 8, committed));
  successor.run(8, preset.steps);
  EXPECT_EQ(successor.output(), clean);
}

TEST_F(ScribbleFinds, EveryWriteOfAnActiveThatGoesOn) {
  Process active(gpu, kept, 1);
  active.run(0, 7);
  Process successor(gpu, kept, 2);
  ASSERT_TRUE(successor.workload->take_over(gpu, 8, active.state()));
  active.run(8, 8);
  successor.run(8, preset.steps);
  // Three regions of 64 words and one of one; each of the two finds what the other wrote.
  EXPECT_THAT(successor.output(), StartsWith("386 stray writes\n"));
}

class ScribbleFindsInARegion : public ScribbleFinds, public ::testing::WithParamInterface<const char*> {};

TEST_P(ScribbleFindsInARegion, OneWordAfterTheTakeover) {
  Process active(gpu, kept, 1);
  active.run(0, 7);
  Process successor(gpu, kept, 2);
  ASSERT_TRUE(successor.workload->take_over(gpu, 8, active.state()));
  write_one_word(GetParam());
  successor.run(8, preset.steps);
  EXPECT_THAT(successor.output(), StartsWith("1 stray writes\nword 0: found "));
}

INSTANTIATE_TEST_SUITE_P(All, ScribbleFindsInARegion,
                         ::testing::Values("field", "copied", "filled", "signalled"));

TEST_F(ScribbleFinds, AStandbyWithOtherOptionsIsRefused) {
  Process active(gpu, kept, 1);
  active.run(0, 7);
  const auto other = ScribbleWorkload::create(gpu, preset, preset.steps + 1, 2).value();
  SharedMemory scratch(gpu.driver());
  ASSERT_TRUE(other->allocate(kept, scratch));
  const Status refused = other->take_over(gpu, 8, active.state());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("other options"));
}

}  // namespace
}  // namespace firebreak::workloads::scribble
