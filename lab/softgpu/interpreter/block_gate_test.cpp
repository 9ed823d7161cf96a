// SPDX-License-Identifier: Apache-2.0
/// Blocks that something keeps from running while the others of their launch go on.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using testing::ptx_header;
using testing::TestGpu;

/// Four blocks of one thread. Each draws a number, counted from 1, and writes it to its place.
constexpr std::uint32_t block_count = 4;
const std::string draw = R"(.visible .entry draw(.param .u64 words)
{
  .reg .b64 p, at; .reg .b32 i, drawn;
  ld.param.u64 p, [words];
  mov.u32 i, %ctaid.x;
  atom.global.add.u32 drawn, [p], 1;
  add.u32 drawn, drawn, 1;
  mul.wide.u32 at, i, 4;
  add.u64 at, p, at;
  st.global.u32 [at+4], drawn;
  ret;
}
)";

/// Halts one block, until somebody waits for it.
class HaltOne final : public BlockGate {
 public:
  HaltOne(std::uint64_t block, bool goes_on) : halted_(block), goes_on_(goes_on) {}
  bool is_halted(std::uint64_t block) override { return halted_ == block; }
  bool wait(std::uint64_t block) override {
    EXPECT_EQ(halted_, block);
    halted_.reset();
    return goes_on_;
  }

 private:
  std::optional<std::uint64_t> halted_;
  bool goes_on_;
};

/// This holds the number that each block has drawn; 0 means that it has not run.
std::pair<LaunchOutcome, std::vector<std::uint32_t>> run(BlockGate& gate) {
  TestGpu gpu;
  gpu.use(ptx_header + draw);
  const std::uint64_t words = gpu.allocate((block_count + 1) * 4);
  const Launch launch = gpu.prepare("draw", {block_count}, {1}, words);
  LaunchOutcome outcome = run_launch(launch, gpu.memory, gpu.control, &gate);
  return {std::move(outcome), gpu.download<std::uint32_t>(words + 4, block_count)};
}

TEST(BlockGates, AHaltedBlockRunsOnceItMayAndTheOthersBeforeIt) {
  HaltOne gate(1, true);
  const auto [outcome, drawn] = run(gate);
  TestGpu::expect_completed(outcome);
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{1, 4, 2, 3}));
}

TEST(BlockGates, AHaltedBlockOfAKernelThatIsToStopDoesNotRun) {
  HaltOne gate(1, false);
  const auto [outcome, drawn] = run(gate);
  EXPECT_TRUE(std::holds_alternative<Stopped>(outcome));
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{1, 0, 2, 3}));
}

/// Halts whichever block is under way.
class HaltInTheMiddle final : public BlockGate {
 public:
  bool is_halted(std::uint64_t) override { return ++questions_ > 2; }
  bool wait(std::uint64_t) override { return false; }

 private:
  int questions_ = 0;
};

TEST(BlockGates, AreAskedWhileABlockRuns) {
  TestGpu gpu;
  gpu.use(ptx_header + ".visible .entry test()\n{\nagain: bra again;\n}\n");
  HaltInTheMiddle gate;
  EXPECT_TRUE(std::holds_alternative<Stopped>(
      run_launch(gpu.prepare("test", {1}, {32}), gpu.memory, gpu.control, &gate)));
}

TEST(BlockGates, AFaultNamesItsBlock) {
  TestGpu gpu;
  gpu.use(ptx_header + R"(.visible .entry test()
{
  .reg .b32 i; .reg .pred p;
  mov.u32 i, %ctaid.x;
  setp.eq.u32 p, i, 2;
  @p trap;
  ret;
}
)");
  const LaunchOutcome outcome = gpu.run("test", {block_count}, {1});
  ASSERT_TRUE(std::holds_alternative<GpuFault>(outcome));
  EXPECT_EQ(std::get<GpuFault>(outcome).block, 2U);
}

}  // namespace
}  // namespace firebreak::softgpu
