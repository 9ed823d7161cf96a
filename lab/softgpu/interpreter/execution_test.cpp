// SPDX-License-Identifier: Apache-2.0
/// How threads run: divergence, calls, barriers, warp-wide instructions, special registers, atomics.
#include <gmock/gmock.h>

#include <numeric>
#include <thread>

#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using ::testing::Each;
using testing::ptx_header;
using testing::TestGpu;

/// A body that leaves its result in %r0; every thread stores it at out[global thread index].
std::string storing(const std::string& body, const std::string& before = "") {
  return ptx_header + before + R"(.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd<8>; .reg .b32 %r<32>; .reg .pred %p<8>; .reg .f32 %f<4>;
  .shared .align 8 .b8 tile[4096];
  mov.u32 %r30, %tid.x;
  mov.u32 %r0, 0;
)" + body +
         R"(
store:
  ld.param.u64 %rd7, [out];
  mov.u32 %r29, %ctaid.x;
  mov.u32 %r28, %ntid.x;
  mad.lo.u32 %r29, %r29, %r28, %r30;
  mul.wide.u32 %rd6, %r29, 4;
  add.s64 %rd7, %rd7, %rd6;
  st.global.u32 [%rd7], %r0;
  ret;
}
)";
}

std::vector<std::uint32_t> run(const std::string& ptx, std::uint32_t threads, std::uint32_t blocks = 1) {
  TestGpu gpu;
  gpu.use(ptx);
  if (::testing::Test::HasFatalFailure()) return {};
  const std::uint64_t out = gpu.allocate(4 * threads * blocks);
  gpu.complete("test", {blocks}, {threads}, out);
  return gpu.download<std::uint32_t>(out, threads * blocks);
}

TEST(Divergence, LanesComeTogetherAgain) {
  const auto out = run(storing(R"(
  and.b32 %r1, %r30, 3;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra zero;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bra one;
  add.u32 %r0, %r0, 100;
  bra join;
zero:
  add.u32 %r0, %r0, 200;
  bra join;
one:
  add.u32 %r0, %r0, 300;
join:
  activemask.b32 %r2;
  popc.b32 %r2, %r2;
  add.u32 %r0, %r0, %r2;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], (lane % 4 == 0 ? 200 : lane % 4 == 1 ? 300 : 100) + 32) << lane;
  }
}

TEST(Divergence, LoopsOfDifferentLengthsMeetBehindTheLoop) {
  const auto out = run(storing(R"(
  mov.u32 %r1, %r30;
again:
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra done;
  add.u32 %r0, %r0, 2;
  sub.u32 %r1, %r1, 1;
  bra again;
done:
  activemask.b32 %r2;
  setp.ne.b32 %p1, %r2, 0xFFFFFFFF;
  @%p1 mov.u32 %r0, 999;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 2 * lane);
}

TEST(Divergence, IndexedBranches) {
  const auto out = run(storing(R"(
  rem.u32 %r1, %r30, 3;
  {
  targets: .branchtargets case0, case1, case2;
  brx.idx %r1, targets;
  }
case0:
  mov.u32 %r0, 10;
  bra store;
case1:
  mov.u32 %r0, 11;
  bra store;
case2:
  mov.u32 %r0, 12;)"),
                       40);
  for (std::uint32_t thread = 0; thread < 40; ++thread) EXPECT_EQ(out[thread], 10 + thread % 3);
}

TEST(Divergence, ThreadsMayExitEarly) {
  const auto out = run(storing(R"(
  and.b32 %r1, %r30, 1;
  setp.eq.u32 %p0, %r1, 0;
  mov.u32 %r0, 7;
  @%p0 exit;
  activemask.b32 %r0;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane % 2 == 0 ? 0 : 0xAAAAAAAA);
}

const std::string functions = R"(
.func (.param .b32 result) twice(.param .b32 value)
{
  .reg .b32 %r;
  ld.param.u32 %r, [value];
  add.u32 %r, %r, %r;
  st.param.u32 [result], %r;
  ret;
}
.func (.reg .b32 result) plus_one(.reg .b32 value)
{
  add.u32 result, value, 1;
  ret;
}
.func (.param .b32 result) square(.param .b32 value)
{
  .reg .b32 %r;
  ld.param.u32 %r, [value];
  mul.lo.u32 %r, %r, %r;
  st.param.u32 [result], %r;
  ret;
}
)";

TEST(Calls, DivergedCallsReturnToTheirCallers) {
  const auto out = run(storing(R"(
  .param .b32 in;
  .param .b32 back;
  and.b32 %r1, %r30, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra skip;
  st.param.b32 [in], %r30;
  call (back), twice, (in);
  ld.param.b32 %r0, [back];
skip:
  call (%r0), plus_one, (%r0);)",
                               functions),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], (lane % 2 == 0 ? 0 : 2 * lane) + 1);
}

TEST(Calls, IndirectCallsMayDiffer) {
  const auto out = run(storing(R"(
  .param .b32 in;
  .param .b32 back;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  and.b32 %r1, %r30, 1;
  setp.eq.u32 %p0, %r1, 0;
  mov.u64 %rd0, twice;
  mov.u64 %rd1, square;
  selp.b64 %rd0, %rd0, %rd1, %p0;
  st.param.b32 [in], %r30;
  call (back), %rd0, (in), proto;
  ld.param.b32 %r0, [back];)",
                               functions),
                       33);
  for (std::uint32_t thread = 0; thread < 33; ++thread) {
    EXPECT_EQ(out[thread], thread % 2 == 0 ? 2 * thread : thread * thread) << thread;
  }
}

TEST(Barriers, OrderSharedMemoryAcrossWarps) {
  const auto out = run(storing(R"(
  mov.u32 %r1, tile;
  shl.b32 %r2, %r30, 2;
  add.u32 %r2, %r1, %r2;
  st.shared.u32 [%r2], %r30;
  bar.sync 0;
  sub.u32 %r3, 95, %r30;
  shl.b32 %r3, %r3, 2;
  add.u32 %r3, %r1, %r3;
  ld.shared.u32 %r0, [%r3];)"),
                       96);
  for (std::uint32_t thread = 0; thread < 96; ++thread) EXPECT_EQ(out[thread], 95 - thread);
}

TEST(Barriers, DoNotWaitForThreadsThatExited) {
  const auto out = run(storing(R"(
  setp.ge.u32 %p0, %r30, 40;
  @%p0 exit;
  bar.sync 0;
  mov.u32 %r0, 5;)"),
                       100);
  for (std::uint32_t thread = 0; thread < 100; ++thread) EXPECT_EQ(out[thread], thread < 40 ? 5 : 0);
}

TEST(Barriers, Reduce) {
  const auto out = run(storing(R"(
  setp.lt.u32 %p0, %r30, 37;
  bar.red.popc.u32 %r0, 1, %p0;
  bar.red.and.pred %p1, 1, %p0;
  bar.red.or.pred %p2, 1, !%p0;
  @%p1 add.u32 %r0, %r0, 1000;
  @%p2 add.u32 %r0, %r0, 2000;)"),
                       64);
  EXPECT_THAT(out, Each(2037U));
}

TEST(Barriers, ArriveLetsAProducerGoOn) {
  const auto out = run(storing(R"(
  setp.ge.u32 %p0, %r30, 32;
  @%p0 bra consumer;
  st.shared.u32 [tile], 77;
  bar.arrive 3, 64;
  bra store;
consumer:
  bar.sync 3, 64;
  ld.shared.u32 %r0, [tile];)"),
                       64);
  for (std::uint32_t thread = 0; thread < 64; ++thread) EXPECT_EQ(out[thread], thread < 32 ? 0 : 77);
}

TEST(Barriers, PartsOfAWarpMayWaitInDifferentPlaces) {
  const auto out = run(storing(R"(
  and.b32 %r1, %r30, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra even;
  st.shared.u32 [tile], 5;
  barrier.sync 0;
  bra after;
even:
  barrier.sync 0;
after:
  ld.shared.u32 %r0, [tile];)"),
                       48);
  EXPECT_THAT(out, Each(5U));
}

TEST(WarpSync, WaitsForMembersThatAreElsewhere) {
  const auto out = run(storing(R"(
  and.b32 %r1, %r30, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra even;
  add.u32 %r2, %r30, 100;
  shfl.sync.bfly.b32 %r0, %r2, 1, 31, 0xFFFFFFFF;
  bra store;
even:
  add.u32 %r2, %r30, 200;
  shfl.sync.bfly.b32 %r0, %r2, 1, 31, 0xFFFFFFFF;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], (lane ^ 1U) + (lane % 2 == 0 ? 100 : 200));
}

TEST(WarpSync, DoesNotWaitForLanesThatExited) {
  const auto out = run(storing(R"(
  setp.ge.u32 %p0, %r30, 20;
  setp.lt.u32 %p1, %r30, 10;
  @%p1 bra first;
  @%p0 exit;
first:
  vote.sync.ballot.b32 %r0, 1, 0xFFFFFFFF;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 20 ? 0xFFFFF : 0);
}

TEST(WarpSync, GroupsWithTheirOwnMasks) {
  const auto out = run(storing(R"(
  and.b32 %r1, %r30, 3;
  match.any.sync.b32 %r2, %r1, 0xFFFFFFFF;
  redux.sync.add.u32 %r0, %r30, %r2;)"),
                       32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 8 * (lane % 4) + 4 * 28);
}

TEST(WarpSync, VotesAndElections) {
  const auto out = run(storing(R"(
  setp.lt.u32 %p0, %r30, 5;
  vote.sync.all.pred %p1, %p0, 0x1F;
  vote.sync.any.pred %p2, !%p0, 0xFFFFFFFF;
  vote.sync.uni.pred %p3, %p0, 0xFFFFFFFF;
  elect.sync %r1|%p4, 0xFFFFFFF0;
  selp.u32 %r0, 1, 0, %p1;
  @%p2 or.b32 %r0, %r0, 2;
  @%p3 or.b32 %r0, %r0, 4;
  @%p4 or.b32 %r0, %r0, 8;)"),
                       32);
  EXPECT_EQ(out[0], 3U);
  EXPECT_EQ(out[4], 11U);
  EXPECT_EQ(out[9] & ~1U, 2U);
}

TEST(WarpSync, ReductionsOfSignedNumbersAndBits) {
  const auto out = run(storing(R"(
  sub.s32 %r1, %r30, 16;
  redux.sync.min.s32 %r2, %r1, 0xFFFFFFFF;
  redux.sync.max.u32 %r3, %r1, 0xFFFFFFFF;
  redux.sync.or.b32 %r4, %r30, 0xFFFFFFFF;
  add.u32 %r0, %r2, %r3;
  add.u32 %r0, %r0, %r4;)"),
                       32);
  EXPECT_THAT(out, Each(static_cast<std::uint32_t>(-16 + -1 + 31)));
}

TEST(SpecialRegisters, OfThreadsAndBlocks) {
  const auto out = run(storing(R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %warpid;
  mov.u32 %r4, %nwarpid;
  mov.u32 %r5, %laneid;
  mov.u32 %r6, %lanemask_lt;
  popc.b32 %r6, %r6;
  mad.lo.u32 %r0, %r1, 10, %r2;
  mad.lo.u32 %r0, %r0, 10, %r3;
  mad.lo.u32 %r0, %r0, 10, %r4;
  mad.lo.u32 %r0, %r0, 100, %r5;
  mad.lo.u32 %r0, %r0, 100, %r6;)"),
                       70, 3);
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const std::uint32_t thread = i % 70;
    const std::uint32_t lane = thread % 32;
    EXPECT_EQ(out[i], ((((i / 70 * 10 + 3) * 10 + thread / 32) * 10 + 3) * 100 + lane) * 100 + lane) << i;
  }
}

TEST(SpecialRegisters, ThreeDimensions) {
  TestGpu gpu;
  gpu.use(ptx_header + R"(.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd<2>; .reg .b32 %r<8>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %tid.z;
  mad.lo.u32 %r3, %r1, 3, %r0;
  mad.lo.u32 %r3, %r2, 15, %r3;
  mad.lo.u32 %r4, %r2, 10, %r1;
  mad.lo.u32 %r4, %r4, 10, %r0;
  ld.param.u64 %rd0, [out];
  mul.wide.u32 %rd1, %r3, 4;
  add.s64 %rd0, %rd0, %rd1;
  st.global.u32 [%rd0], %r4;
  ret;
}
)");
  const std::uint64_t out = gpu.allocate(30 * 4);
  gpu.complete("test", {1}, {3, 5, 2}, out);
  const auto results = gpu.download<std::uint32_t>(out, 30);
  for (std::uint32_t i = 0; i < 30; ++i) EXPECT_EQ(results[i], i / 15 * 100 + i / 3 % 5 * 10 + i % 3);
}

TEST(SpecialRegisters, ClocksGoForward) {
  const auto out = run(storing(R"(
  mov.u64 %rd0, %clock64;
  mov.u64 %rd1, %globaltimer;
  mov.u32 %r1, %clock;
again:
  mov.u64 %rd2, %clock64;
  setp.eq.u64 %p0, %rd2, %rd0;
  @%p0 bra again;
  setp.gt.u64 %p1, %rd2, %rd0;
  selp.u32 %r0, 1, 0, %p1;)"),
                       32);
  EXPECT_THAT(out, Each(1U));
}

TEST(Atomics, OfAllLanesOnOneAddress) {
  const auto out = run(storing(R"(
  atom.shared.add.u32 %r1, [tile], 1;
  atom.shared.max.s32 %r1, [tile+4], %r30;
  atom.shared.inc.u32 %r1, [tile+8], 9;
  atom.shared.or.b32 %r1, [tile+12], %r30;
  atom.shared.add.f32 %f0, [tile+16], 0f3F000000;
  atom.shared.dec.u32 %r1, [tile+20], 6;
  red.shared.add.u64 [tile+24], 0x100000001;
  bar.sync 0;
  ld.shared.u32 %r0, [tile];
  ld.shared.u32 %r1, [tile+4];
  add.u32 %r0, %r0, %r1;
  ld.shared.u32 %r1, [tile+8];
  add.u32 %r0, %r0, %r1;
  ld.shared.u32 %r1, [tile+12];
  add.u32 %r0, %r0, %r1;
  ld.shared.f32 %f0, [tile+16];
  cvt.rzi.u32.f32 %r1, %f0;
  add.u32 %r0, %r0, %r1;
  ld.shared.u32 %r1, [tile+20];
  mad.lo.u32 %r0, %r1, 1000, %r0;
  ld.shared.u32 %r1, [tile+28];
  mad.lo.u32 %r0, %r1, 100000, %r0;)"),
                       64);
  // 64 additions, maximum 63, 64 increments modulo 10, or 63, 32.0, 64 decrements modulo 7 from 0, 64 in the
  // upper word.
  EXPECT_THAT(out, Each(64U + 63 + 4 + 63 + 32 + 6 * 1000 + 64 * 100000));
}

TEST(Atomics, CompareAndSwapAndExchangeGiveTheOldValue) {
  const auto out = run(storing(R"(
  atom.shared.cas.b32 %r1, [tile], 0, 5;
  atom.shared.cas.b32 %r2, [tile], 0, 6;
  atom.shared.exch.b64 %rd0, [tile+8], 0x700000001;
  atom.shared.exch.b64 %rd0, [tile+8], 0;
  shr.u64 %rd0, %rd0, 32;
  cvt.u32.u64 %r3, %rd0;
  ld.shared.u32 %r4, [tile];
  mad.lo.u32 %r0, %r1, 10, %r2;
  mad.lo.u32 %r0, %r0, 10, %r3;
  mad.lo.u32 %r0, %r0, 10, %r4;)"),
                       1);
  EXPECT_EQ(out[0], 575U);
}

TEST(Memory, GenericAddressesOfEverySpace) {
  const auto out = run(storing(R"(
  .local .align 8 .b8 depot[16];
  mov.u64 %rd0, depot;
  cvta.local.u64 %rd1, %rd0;
  st.u32 [%rd1+4], %r30;
  ld.local.u32 %r1, [%rd0+4];
  cvta.shared.u64 %rd2, tile;
  st.u16 [%rd2+2], %r30;
  ld.shared.u16 %r2, [tile+2];
  isspacep.shared %p0, %rd2;
  isspacep.local %p1, %rd2;
  cvta.to.shared.u64 %rd3, %rd2;
  cvt.u32.u64 %r3, %rd3;
  setp.ne.u32 %p2, %r1, %r30;
  selp.u32 %r0, 1, 0, %p0;
  @%p1 add.u32 %r0, %r0, 10;
  @%p2 add.u32 %r0, %r0, 100;
  add.u32 %r0, %r0, %r3;)"),
                       32);
  EXPECT_THAT(out, Each(1U));
}

TEST(Memory, NarrowLoadsWidenAsTheirTypeSays) {
  const auto out = run(storing(R"(
  st.shared.u32 [tile], 0xFFFE8180;
  ld.shared.s8 %r1, [tile];
  ld.shared.u8 %r2, [tile+1];
  ld.shared.s16 %r3, [tile+2];
  ld.shared.s16 %rd0, [tile+2];
  cvt.u32.u64 %r4, %rd0;
  add.s32 %r0, %r1, %r2;
  add.s32 %r0, %r0, %r3;
  add.s32 %r0, %r0, %r4;)"),
                       1);
  EXPECT_EQ(static_cast<std::int32_t>(out[0]), -128 + 0x81 - 2 - 2);
}

TEST(Memory, ModuleVariablesHaveInitialValues) {
  const std::string variables = R"(
.global .align 4 .u32 numbers[4] = {10, 20, 30};
.const .align 4 .u32 factor = 3;
.global .align 8 .u64 pointer = numbers+4;
)";
  const auto out = run(storing(R"(
  ld.global.u64 %rd0, [pointer];
  ld.global.u32 %r1, [%rd0+4];
  ld.const.u32 %r2, [factor];
  mul.lo.u32 %r0, %r1, %r2;
  ld.global.u32 %r1, [numbers+12];
  add.u32 %r0, %r0, %r1;)",
                               variables),
                       1);
  EXPECT_EQ(out[0], 90U);
}

TEST(Concurrency, LaunchesShareMemoryAndModules) {
  TestGpu gpu;
  gpu.use(ptx_header + R"(.visible .entry test(.param .u64 cell)
{
  .reg .b64 %rd; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd, [cell];
  mov.u32 %r0, 1000;
again:
  atom.global.add.u32 %r1, [%rd], 1;
  ld.global.u32 %r2, [%rd+4];
  st.global.u32 [%rd+4], %r1;
  sub.u32 %r0, %r0, 1;
  setp.ne.u32 %p, %r0, 0;
  @%p bra again;
  membar.gl;
  ret;
}
)");
  const std::uint64_t cell = gpu.allocate(8);
  const Launch launch = gpu.prepare("test", {2}, {32}, cell);
  testing::QuietControl other_control;
  std::thread other([&] { TestGpu::expect_completed(run_launch(launch, gpu.memory, other_control)); });
  TestGpu::expect_completed(run_launch(launch, gpu.memory, gpu.control));
  other.join();
  EXPECT_EQ(gpu.download<std::uint32_t>(cell, 1)[0], 2U * 2 * 32 * 1000);
}

}  // namespace
}  // namespace firebreak::softgpu
