// SPDX-License-Identifier: Apache-2.0
/// Launches whose threads take turns by a seed: every order that PTX allows has its chance, the same seed
/// gives the same one, and what threads wait for still comes.
#include <gmock/gmock.h>

#include <set>

#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using testing::ptx_header;
using testing::TestGpu;

constexpr std::uint64_t seeds = 60;

struct SeenOrder : AccessObserver {
  bool observe(const ObservedAccess& access) override {
    threads.push_back(access.thread);
    return threads.size() < stop_after;
  }
  std::vector<std::uint64_t> threads;
  std::size_t stop_after = ~std::size_t{0};
};

std::string kernel(const std::string& body) {
  return ptx_header + R"(.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd<8>; .reg .b32 %r<32>; .reg .pred %p<8>;
  .shared .align 8 .b8 tile[4096];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd2, %rd1, %rd2;
)" + body +
         "\n  ret;\n}\n";
}

// Each thread writes the same word and reads it back: what it reads is a thread that came in between.
const std::string last_writer = kernel(R"(
  st.global.u32 [%rd1+4096], %r4;
  ld.global.u32 %r5, [%rd1+4096];
  st.global.u32 [%rd2], %r5;)");

std::vector<std::uint32_t> run(TestGpu& gpu, std::uint64_t seed, Dimensions grid, Dimensions block,
                               AccessObserver* observer = nullptr) {
  const std::uint64_t out = gpu.allocate(8192);
  Launch launch = gpu.prepare("test", grid, block, out);
  launch.interleaving = Interleaving{.seed = seed};
  launch.observer = observer;
  const LaunchOutcome outcome = run_launch(launch, gpu.memory, gpu.control);
  EXPECT_TRUE(observer != nullptr || std::holds_alternative<Completed>(outcome)) << "seed " << seed;
  return gpu.download<std::uint32_t>(out, std::size_t{grid.x} * block.x);
}

TEST(Interleaving, AThreadOfEachOtherBlockAndOfItsOwnWarpMayComeInBetween) {
  TestGpu gpu;
  gpu.use(last_writer);
  bool other_block = false;
  bool other_warp = false;
  bool own_warp = false;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto read = run(gpu, seed, {2}, {64});
    for (std::uint32_t thread = 0; thread < read.size(); ++thread) {
      other_block = other_block || read[thread] / 64 != thread / 64;
      other_warp = other_warp || (read[thread] / 64 == thread / 64 && read[thread] / 32 != thread / 32);
      // All of a warp that store at once read the last lane of those.
      own_warp = own_warp || (read[thread] / 32 == thread / 32 && read[thread] < thread);
    }
  }
  EXPECT_TRUE(other_block);
  EXPECT_TRUE(other_warp);
  EXPECT_TRUE(own_warp);
}

TEST(Interleaving, ASeedGivesOneOrderAndSeedsDiffer) {
  TestGpu gpu;
  gpu.use(last_writer);
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SeenOrder first;
    SeenOrder second;
    run(gpu, seed, {3}, {40}, &first);
    run(gpu, seed, {3}, {40}, &second);
    EXPECT_EQ(first.threads, second.threads) << "seed " << seed;
    EXPECT_EQ(first.threads.size(), 3 * 3 * 40U);
    orders.insert(first.threads);
  }
  EXPECT_GT(orders.size(), seeds / 2);
}

TEST(Interleaving, AnyBlockMayBeginLast) {
  TestGpu gpu;
  gpu.use(last_writer);
  std::set<std::uint64_t> last;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SeenOrder order;
    run(gpu, seed, {3}, {1}, &order);
    last.insert(order.threads.back());
  }
  EXPECT_EQ(last, (std::set<std::uint64_t>{0, 1, 2}));
}

TEST(Interleaving, WhoWaitsAtABarrierOrForAWarpGoesOn) {
  TestGpu gpu;
  gpu.use(kernel(R"(
  setp.gt.u32 %p1, %r3, 90;
  @%p1 ret;
  mov.u32 %r6, tile;
  mad.lo.u32 %r7, %r3, 4, %r6;
  st.shared.u32 [%r7], %r3;
  ld.global.u32 %r9, [%rd2];
  bar.sync 0;
  xor.b32 %r8, %r3, 1;
  mad.lo.u32 %r8, %r8, 4, %r6;
  ld.shared.u32 %r5, [%r8];
  setp.gt.u32 %p2, %r3, 63;
  @%p2 bra store;
  shfl.sync.bfly.b32 %r5, %r5, 1, 31, 0xffffffff;
store:
  st.global.u32 [%rd2], %r5;)"));
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto found = run(gpu, seed, {2}, {96});
    for (std::uint32_t thread = 0; thread < 64; ++thread) ASSERT_EQ(found[thread], thread) << "seed " << seed;
    for (std::uint32_t thread = 64; thread < 90; ++thread) ASSERT_EQ(found[thread], thread ^ 1U);
  }
}

TEST(Interleaving, OneBlockMayWaitForAnother) {
  TestGpu gpu;
  gpu.use(kernel(R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra tell;
again:
  ld.volatile.global.u32 %r5, [%rd1+4096];
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra again;
  bra done;
tell:
  st.volatile.global.u32 [%rd1+4096], 1;
done:
  st.global.u32 [%rd2], 5;)"));
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    EXPECT_THAT(run(gpu, seed, {2}, {2}), ::testing::Each(5U));
}

TEST(Interleaving, TearsInTheMiddleOfAWarpsInstruction) {
  TestGpu gpu;
  gpu.use(kernel("  st.global.u32 [%rd2], 7;"));
  SeenOrder order;
  order.stop_after = 6;
  const auto found = run(gpu, 3, {1}, {32}, &order);
  EXPECT_EQ(std::count(found.begin(), found.end(), 7U), 5);
}

TEST(Interleaving, WhatNeverEndsIsStoppedAfterItsSteps) {
  TestGpu gpu;
  const char* const endless[] = {"again:\n  add.u32 %r5, %r5, 1;\n  bra again;", "  bar.sync 0, 64;"};
  for (const char* const body : endless) {
    gpu.use(kernel(body));
    Launch launch = gpu.prepare("test", {2}, {32}, gpu.allocate(8192));
    launch.interleaving = Interleaving{.seed = 1, .most_steps = 10'000};
    EXPECT_TRUE(std::holds_alternative<Stopped>(run_launch(launch, gpu.memory, gpu.control)));
  }
}

}  // namespace
}  // namespace firebreak::softgpu
