// SPDX-License-Identifier: Apache-2.0
// Tests of what launches certainly write.
#include "kernels/access/effects.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kernels/ptx/parse.h"

namespace firebreak::access {
namespace {

constexpr std::uint64_t a = 0x7000'0000'0000;
constexpr std::uint64_t b = 0x7000'0100'0000;

// Makes a kernel of `body`: %rd1 and %rd2 are the pointers, %r1 is n, %r5 the thread's place in the grid, %r4
// in its block, %r2 the block's. `last` stands behind the last instruction.
std::string kernel(const std::string& body, const std::string& last) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n"
         "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n"
         "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
         "mad.lo.s32 %r5, %r2, %r3, %r4; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;\n"
         "mov.u32 %r6, %nctaid.x; mul.lo.s32 %r7, %r6, %r3;\n"
         "add.s64 %rd5, %rd2, %rd3;\n" +
         body + "\nDONE: ret;\n" + last + "}\n";
}

class EffectsTest : public ::testing::Test {
 protected:
  OperationEffects effects(const std::string& body, std::uint32_t n = 100) {
    const auto module = ptx::parse(kernel(body, last));
    EXPECT_TRUE(module) << module.error().message;
    const KernelSummary summary = summarise(*module, module->functions.at(0));
    std::vector<std::byte> parameters(20);
    std::memcpy(parameters.data(), &a, 8);
    std::memcpy(parameters.data() + 8, &b, 8);
    std::memcpy(parameters.data() + 16, &n, 4);
    LaunchArguments launch;
    launch.grid = grid;
    launch.block = {32, 1, 1};
    launch.parameters = parameters;
    launch.memory = memory;
    DecisionWorkspace workspace;
    return find_effects(summary, launch, workspace);
  }
  // "begin-end" of each box, from `a`; what is between rows is written "begin-end+stride*count".
  std::string certain(const std::string& body, std::uint32_t n = 100) {
    std::string text;
    for (const StridedBox& box : effects(body, n).certain_writes) {
      const auto begin = static_cast<long long>(box.starts.base - static_cast<Wide>(a));
      text += (text.empty() ? "" : " ") + std::to_string(begin) + "-" +
              std::to_string(begin + static_cast<long long>(box.width_bytes));
      for (std::size_t i = 0; i < box.starts.axis_count; ++i)
        text += "+" + std::to_string(static_cast<long long>(box.starts.axes[i].stride)) + "*" +
                std::to_string(static_cast<long long>(box.starts.axes[i].last));
    }
    return text;
  }

  std::string last;
  std::array<std::uint32_t, 3> grid{4, 1, 1};
  std::vector<MemoryRange> memory{{a, 1 << 16, a}, {b, 1 << 16, b}};
};

TEST_F(EffectsTest, AStoreOfEachThreadIsCertain) {
  EXPECT_EQ(certain("st.global.u32 [%rd4], %r5;"), "0-512");
  EXPECT_EQ(certain("st.global.u32 [%rd4+64], %r5;"), "64-576");
}

TEST_F(EffectsTest, AGuardBoundsIt) {
  const std::string guarded = "setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE; st.global.u32 [%rd4], %r5;";
  EXPECT_EQ(certain(guarded), "0-400");
  EXPECT_EQ(certain(guarded, 1'000), "0-512");
  EXPECT_EQ(certain(guarded, 0), "");
  EXPECT_EQ(certain("setp.lt.u32 %p1, %r5, %r1; @%p1 st.global.u32 [%rd4], %r5;"), "0-400");
  EXPECT_EQ(certain("setp.gt.s32 %p1, %r5, %r1; @%p1 st.global.u32 [%rd4], %r5;"), "404-512");
  EXPECT_EQ(certain("setp.ne.s32 %p1, %r4, 0; @%p1 bra DONE; mul.wide.s32 %rd6, %r2, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5;"),
            "0-16");
}

// The outer loop has no test of its own: the inner one's may end it in the middle of a round.
TEST_F(EffectsTest, ATestInAnInnerLoopDoesNotCountTheOuterOne) {
  const std::string diagonal =
      "mov.u32 %r10, 0; OUTER: mov.u32 %r11, 0; INNER: shl.b32 %r12, %r10, 2; add.s32 %r13, %r12, %r11;"
      "mul.wide.u32 %rd6, %r13, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r13;"
      "add.s32 %r14, %r10, %r11; setp.lt.s32 %p1, %r14, %r1; @!%p1 bra DONE;"
      "add.s32 %r11, %r11, 1; setp.lt.s32 %p2, %r11, 4; @%p2 bra INNER; add.s32 %r10, %r10, 1; bra OUTER;";
  EXPECT_EQ(certain(diagonal, 5), "0-4");  // the first round of both
  // Each loop has its own counter: all is written.
  const std::string whole =
      "mov.u32 %r10, 0; OUTER: mov.u32 %r11, 0; INNER: shl.b32 %r12, %r10, 2; add.s32 %r13, %r12, %r11;"
      "mul.wide.u32 %rd6, %r13, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r13;"
      "add.s32 %r11, %r11, 1; setp.lt.s32 %p2, %r11, 4; @%p2 bra INNER;"
      "add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, %r1; @%p1 bra OUTER;";
  EXPECT_EQ(certain(whole, 5), "0-80");
}

TEST_F(EffectsTest, ConditionsThatAreNoOneComparisonSayNothing) {
  EXPECT_EQ(certain("setp.lt.s32 %p1, %r5, 90; setp.gt.s32 %p2, %r5, 9; @!%p1 bra DONE; @!%p2 bra DONE;"
                    "st.global.u32 [%rd4], %r5;"),
            "40-360");
  EXPECT_EQ(
      certain("setp.lt.s32 %p1, %r5, 9; setp.gt.s32 %p2, %r5, 90; or.pred %p3, %p1, %p2; @!%p3 bra DONE;"
              "setp.lt.s32 %p4, %r5, %r1; @!%p4 bra DONE; st.global.u32 [%rd4], %r5;"),
      "");
}

TEST_F(EffectsTest, OnlyStoresAreCertain) {
  EXPECT_EQ(certain("discard.global.L2 [%rd4], 128;"), "");
  EXPECT_EQ(certain("red.global.add.u32 [%rd4], 1;"), "");
}

TEST_F(EffectsTest, WhatDependsOnDataIsNot) {
  EXPECT_EQ(certain("ld.global.u32 %r9, [%rd5]; setp.gt.s32 %p1, %r9, 5; @%p1 st.global.u32 [%rd4], %r5;"),
            "");
  EXPECT_EQ(certain("ld.global.u32 %r9, [%rd5]; setp.gt.s32 %p1, %r9, 5; @%p1 bra DONE;"
                    "st.global.u32 [%rd4], %r5;"),
            "");
  EXPECT_EQ(certain("ld.global.u32 %r9, [%rd5]; and.b32 %r9, %r9, 15; mul.wide.s32 %rd6, %r9, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5;"),
            "");
}

// Wherever in the kernel it stands.
TEST_F(EffectsTest, AnAddressThatDependsOnDataIsNotCertainHoweverMuchIsComputedBefore) {
  std::string before = "mov.u32 %r8, %r5;";
  for (int more = 0; more < 140; ++more) {
    EXPECT_EQ(effects(before + "add.s32 %r8, %r8, %r8; mul.wide.s32 %rd6, %r8, 4; add.s64 %rd6, %rd2, %rd6;"
                               "ld.global.u32 %r9, [%rd6]; and.b32 %r9, %r9, 15; mul.wide.s32 %rd6, %r9, 4;"
                               "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5;")
                  .certain_writes.size(),
              0U)
        << more;
    before += more % 2 == 0 ? "min.s32 %r8, %r8, " + std::to_string(1'000 - more) + ";"
                            : "min.s32 %r8, %r8, %r3;max.s32 %r8, %r8, %r4;";
  }
}

TEST_F(EffectsTest, OneOfTwoWaysIsNotCertain) {
  const std::string way = "ld.global.u32 %r9, [%rd5]; setp.gt.s32 %p1, %r9, 5; @%p1 bra OTHER; ";
  EXPECT_EQ(certain(way + "add.s32 %r9, %r9, 1; OTHER: st.global.u32 [%rd4], %r9;"), "0-512");
  EXPECT_EQ(certain(way + "st.global.u32 [%rd4], %r9; OTHER: add.s32 %r9, %r9, 1;"), "");
  // Two of three ways lead to the store: no one condition says so.
  EXPECT_EQ(
      certain(way + "setp.gt.s32 %p2, %r9, 3; @%p2 bra OTHER; bra DONE; OTHER: st.global.u32 [%rd4], %r9;"),
      "");
  EXPECT_EQ(certain(way + "trap; OTHER: st.global.u32 [%rd4], %r9;"), "");
}

TEST_F(EffectsTest, LoopsThatCountAreFollowed) {
  // The loop goes from %r5 on in steps of the grid, the test before or after.
  EXPECT_EQ(certain("setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE; LOOP: mul.wide.s32 %rd6, %r5, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5; add.s32 %r5, %r5, %r7;"
                    "setp.lt.s32 %p2, %r5, %r1; @%p2 bra LOOP;",
                    1'000),
            "0-4000");
  EXPECT_EQ(certain("LOOP: setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE; mul.wide.s32 %rd6, %r5, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5; add.s32 %r5, %r5, %r7; bra LOOP;",
                    1'000),
            "0-4000");
  // A loop of a fixed number of rounds, and what comes after it.
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: mad.lo.s32 %r9, %r8, %r7, %r5; mul.wide.s32 %rd6, %r9, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5; add.s32 %r8, %r8, 1;"
                    "setp.ne.s32 %p2, %r8, 3; @%p2 bra LOOP;"),
            "0-1536");
  EXPECT_EQ(certain("mov.u32 %r8, %r4; LOOP: add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, %r1; @%p2 bra LOOP;"
                    "st.global.u32 [%rd4], %r8;"),
            "0-512");
}

TEST_F(EffectsTest, ALoopThatDataEndsGoesRoundOnce) {
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: mad.lo.s32 %r9, %r8, %r7, %r5; mul.wide.s32 %rd6, %r9, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5; ld.global.u32 %r10, [%rd5];"
                    "setp.eq.s32 %p1, %r10, 7; @%p1 bra DONE; add.s32 %r8, %r8, 1;"
                    "setp.lt.s32 %p2, %r8, 3; @%p2 bra LOOP;"),
            "0-512");
  // The same, but not each round asks.
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: mad.lo.s32 %r9, %r8, %r7, %r5; mul.wide.s32 %rd6, %r9, 4;"
                    "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5; ld.global.u32 %r10, [%rd5];"
                    "setp.gt.s32 %p1, %r10, 7; @%p1 bra NEXT; setp.eq.s32 %p3, %r10, 5; @%p3 bra DONE;"
                    "NEXT: add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, 3; @%p2 bra LOOP;"),
            "0-512");
  // Data may skip the store in the first round.
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: mad.lo.s32 %r9, %r8, %r7, %r5; mul.wide.s32 %rd6, %r9, 4;"
                    "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r10, [%rd5]; add.s32 %r8, %r8, 1;"
                    "setp.eq.s32 %p1, %r10, 7; @%p1 bra LOOP; st.global.u32 [%rd7], %r5;"
                    "setp.lt.s32 %p2, %r8, 3; @%p2 bra LOOP;"),
            "");
}

TEST_F(EffectsTest, WhatComesAfterALoopIsDoneOnceWhereverThatEnded) {
  const std::string at =
      "mad.lo.s32 %r9, %r8, %r7, %r5; mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6;";
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: add.s32 %r8, %r8, 3; setp.lt.s32 %p2, %r8, %r1; @%p2 bra LOOP;" +
                        at + "st.global.u32 [%rd7], %r5;",
                    8),
            "");
  // Data ends it.
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: add.s32 %r8, %r8, 1; ld.global.u32 %r10, [%rd5];"
                    "setp.eq.s32 %p2, %r10, 7; @%p2 bra LOOP;" +
                    at + "st.global.u32 [%rd7], %r5;"),
            "");
  // The rest is left to another loop.
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: add.s32 %r8, %r8, 4; setp.lt.s32 %p2, %r8, %r1; @%p2 bra LOOP;"
                    "REST: setp.ge.s32 %p3, %r8, 16; @%p3 bra DONE;" +
                        at + "st.global.u32 [%rd7], %r5; add.s32 %r8, %r8, 1; bra REST;",
                    8),
            "");
  EXPECT_EQ(certain("mov.u32 %r8, 0; LOOP: add.s32 %r8, %r8, 3; setp.lt.s32 %p2, %r8, %r1; @%p2 bra LOOP;"
                    "st.global.u32 [%rd4], %r8;",
                    8),
            "0-512");
}

TEST_F(EffectsTest, PartsThatTouchAreOne) {
  const std::string four = "mul.wide.s32 %rd6, %r5, 16; add.s64 %rd7, %rd1, %rd6; ";
  EXPECT_EQ(certain(four + "st.global.v4.u32 [%rd7], {%r5, %r5, %r5, %r5};"), "0-2048");
  EXPECT_EQ(
      certain(four + "st.global.u32 [%rd7+8], %r5; st.global.u32 [%rd7], %r5; st.global.u32 [%rd7+4], %r5;"
                     "st.global.u32 [%rd7+12], %r5;"),
      "0-2048");
  EXPECT_EQ(certain(four + "st.global.u32 [%rd7+4], %r5; st.global.u32 [%rd7], %r5;"), "0-8+16*127");
}

// Blocks of 64 elements, of which 32 threads write the first half: the last block is not whole.
TEST_F(EffectsTest, RowsWithGapsAreBoundedRowByRow) {
  EXPECT_EQ(certain("mad.lo.s32 %r8, %r2, 64, %r4; setp.ge.s32 %p1, %r8, %r1; @%p1 bra DONE;"
                    "mul.wide.s32 %rd6, %r8, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r5;",
                    135),
            "512-540 0-128+256*1");
}

TEST_F(EffectsTest, KnowsWhatMayRace) {
  const auto in_place = effects("ld.global.u32 %r9, [%rd4]; add.s32 %r9, %r9, 1; st.global.u32 [%rd4], %r9;");
  EXPECT_FALSE(in_place.may_race || in_place.values_may_race);
  EXPECT_TRUE(effects("ld.global.u32 %r9, [%rd4+4]; st.global.u32 [%rd4], %r9;").may_race);
  EXPECT_TRUE(effects("red.global.add.u32 [%rd4], 1;").may_race);
  EXPECT_TRUE(
      effects(".shared .u32 next; atom.shared.add.u32 %r9, [next], 1; st.global.u32 [%rd4], %r9;").may_race);
  EXPECT_TRUE(effects("activemask.b32 %r9; st.global.u32 [%rd4], %r9;").may_race);
  const auto one_value = effects("st.global.u32 [%rd1], %r5;");
  EXPECT_FALSE(one_value.may_race);
  EXPECT_TRUE(one_value.values_may_race);
  EXPECT_TRUE(effects("ld.global.u32 %r9, [%rd1]; st.global.u32 [%rd1], %r9;").may_race);
  EXPECT_TRUE(effects("st.global.u32 [%rd1], %r5; ld.global.u32 %r9, [%rd1];").may_race);
  // The first thread of each block writes for its block, after others of it have read that.
  EXPECT_TRUE(effects("mul.wide.s32 %rd6, %r2, 4; add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r9, [%rd7];"
                      "setp.ne.s32 %p1, %r4, 0; @%p1 bra DONE; st.global.u32 [%rd7], %r9;")
                  .may_race);
}

// Behind the loop the counter has gone on, and the word is the next thread's.
TEST_F(EffectsTest, TheSameAddressBehindALoopMayBeAnotherThreads) {
  const std::string loop =
      "mov.u32 %r10, 0; L: shl.b32 %r11, %r5, 2; add.s32 %r11, %r11, %r10; mul.wide.s32 %rd6, %r11, 4;"
      "add.s64 %rd7, %rd1, %rd6; setp.ge.s32 %p1, %r10, 4; @%p1 bra END; st.global.u32 [%rd7], %r5;"
      "add.s32 %r10, %r10, 1; bra L; END: ";
  EXPECT_FALSE(effects(loop + "st.global.u32 [%rd5], %r5;").values_may_race);
  EXPECT_TRUE(effects(loop + "ld.global.u32 %r12, [%rd7]; st.global.u32 [%rd5], %r12;").may_race);
  EXPECT_TRUE(effects(loop + "st.global.u32 [%rd7], %r5;").values_may_race);
}

TEST_F(EffectsTest, KnowsWhetherDataChoosesWhatIsWritten) {
  const auto is_fixed = [this](const std::string& body) { return effects(body).writes.at(0).is_fixed; };
  EXPECT_TRUE(is_fixed("st.global.u32 [%rd4], %r5;"));
  EXPECT_TRUE(is_fixed("red.global.add.u32 [%rd4], 1;"));
  EXPECT_FALSE(
      is_fixed("ld.global.u32 %r9, [%rd5]; setp.gt.s32 %p1, %r9, 5; @%p1 st.global.u32 [%rd4], %r5;"));
}

// Only the first round is certain: later ones write what the next threads write, if the data let them.
TEST_F(EffectsTest, ALoopThatDataMayEndWritesMoreThanItsFirstRound) {
  const OperationEffects found = effects(
      "mov.u32 %r6, 0; ROUND: add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1; setp.gt.u32 %p1, %r6, 3;"
      "@%p1 bra DONE; st.global.u32 [%rd4], %r5; ld.global.u32 %r7, [%rd5];"
      "setp.ne.s32 %p2, %r7, 9; @%p2 bra ROUND;");
  EXPECT_TRUE(found.values_may_race);
  EXPECT_FALSE(found.writes.at(0).is_fixed);
}

// A label behind the last instruction is a return, in a table of branches, too.
TEST_F(EffectsTest, ATableMayEndTheThread) {
  const std::string write = "WRITE: st.global.u32 [%rd4], %r5;";
  const std::string table = "ld.global.u32 %r9, [%rd5]; T: .branchtargets WRITE, ";
  EXPECT_EQ(certain(table + "WRITE; brx.idx %r9, T;" + write), "0-512");
  last = "LAST: ";
  EXPECT_EQ(certain(table + "LAST; brx.idx %r9, T;" + write), "");
}

TEST_F(EffectsTest, OfAnUnknownLaunchNothingIsCertain) {
  const auto unknown =
      effects("ld.global.u64 %rd6, [%rd5]; st.global.u32 [%rd4], %r5; st.global.u32 [%rd6], %r5;");
  EXPECT_EQ(unknown.decision.verdict, Verdict::Unknown);
  memory.front().size_bytes = 256;  // the write goes over the end
  EXPECT_EQ(certain("st.global.u32 [%rd4], %r5;"), "");
}

}  // namespace
}  // namespace firebreak::access
