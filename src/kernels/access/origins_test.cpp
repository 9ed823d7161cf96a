// SPDX-License-Identifier: Apache-2.0
// Tests of which allocation an access lies in whose place there is data.
#include "kernels/access/decision_memo.h"
#include "tests/doubles/access/analysed_launch_test_support.h"

namespace firebreak::access {
namespace {

using testing::a;
using testing::b;

class OriginsTest : public testing::AnalysedLaunch {
 protected:
  // Reads its word of the second array, writes to the first at a place that data says.
  static constexpr const char* scatter =
      "ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd5+4096]; mul.wide.s32 %rd6, %r7, 4;"
      "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r6;";
  // The same, with a generic address of a word in shared memory: %rd9.
  static constexpr const char* shared_word = "mov.u64 %rd8, tile; cvta.shared.u64 %rd9, %rd8;";
  static constexpr const char* read_word = "ld.global.u32 %r6, [%rd4]; add.s32 %r6, %r6, 1;";
};

TEST_F(OriginsTest, APointerIntoItsAllocationStaysThere) { EXPECT_EQ(verdict(scatter), Verdict::Idempotent); }

// C++ has a pointer behind the last element of an array, and indices below zero from there.
TEST_F(OriginsTest, APointerBetweenTwoAllocationsMayBeOfBoth) {
  const std::uint64_t end = a + (1 << 16);
  memory = {{a, 1 << 16, a}, {end, 1 << 16, end}};
  first = end;
  second = a;
  EXPECT_EQ(verdict(scatter), Verdict::Unknown);
  first = a;
  second = end;
  EXPECT_EQ(verdict(scatter), Verdict::Idempotent);
  first = end + 4096;  // well inside
  second = a;
  EXPECT_EQ(verdict(scatter), Verdict::Idempotent);
}

// An array that counts from one begins an element before its memory.
TEST_F(OriginsTest, APointerJustBeforeTheNextAllocationMayBeOfThat) {
  const std::uint64_t end = a + (1 << 16);
  memory = {{a, 1 << 16, a}, {end, 1 << 16, end}};
  first = end - 4;
  second = end;
  EXPECT_EQ(verdict(scatter), Verdict::Unknown);
  first = end - 32'768;
  EXPECT_EQ(verdict(scatter), Verdict::Idempotent);
}

// Whatever the data are, it is not in the allocation that its pointer is of.
TEST_F(OriginsTest, AKnownDistanceMayLeadOutOfTheAllocation) {
  const auto scatter_from = [](const std::string& distance) {
    return "ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd5+4096]; mul.wide.u32 %rd6, %r7, 4;"
           "add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd7, " +
           distance + "; st.global.u32 [%rd8], %r6;";
  };
  EXPECT_EQ(verdict(scatter_from("4096")), Verdict::Idempotent);
  EXPECT_EQ(verdict(scatter_from("-4096")), Verdict::Idempotent);
  EXPECT_EQ(verdict(scatter_from(std::to_string(b - a))), Verdict::Unknown);
  EXPECT_EQ(verdict(scatter_from("65536")), Verdict::Unknown);
}

TEST_F(OriginsTest, APointerBehindAnAllocationWithNothingThereIsUnknown) {
  first = a + (1 << 16);
  EXPECT_EQ(verdict(scatter), Verdict::Unknown);
}

// Two pointers in one sum do not say which is the distance.
TEST_F(OriginsTest, BothSidesOfADifferenceAreLookedAt) {
  const std::string in_place = "st.u32 [%rd11], %r6;";
  const std::string start = std::string(read_word) + shared_word;
  EXPECT_NE(verdict(start + "sub.s64 %rd10, %rd9, %rd4; sub.s64 %rd11, %rd9, %rd10;" + in_place),
            Verdict::Idempotent);
  EXPECT_NE(verdict(start + "sub.s64 %rd10, %rd4, %rd9; add.s64 %rd11, %rd9, %rd10;" + in_place),
            Verdict::Idempotent);
  EXPECT_NE(verdict(start + "neg.s64 %rd12, %rd4; add.s64 %rd10, %rd9, %rd12; sub.s64 %rd11, %rd9, %rd10;" +
                    in_place),
            Verdict::Idempotent);
  EXPECT_NE(verdict(start +
                    "not.b64 %rd12, %rd4; add.s64 %rd10, %rd9, %rd12; add.s64 %rd10, %rd10, 1;"
                    "sub.s64 %rd11, %rd9, %rd10;" +
                    in_place),
            Verdict::Idempotent);
}

TEST_F(OriginsTest, NoOperationHidesAPointer) {
  const std::string in_place = "add.s64 %rd11, %rd9, %rd10; sub.s64 %rd11, %rd11, %rd9; st.u32 [%rd11], %r6;";
  const std::string start = std::string(read_word) + shared_word;
  for (const char* copy : {"mul.lo.s64 %rd10, %rd4, 1;", "and.b64 %rd10, %rd4, -1;",
                           "or.b64 %rd10, %rd4, %rd4;", "max.u64 %rd10, %rd4, 0;", "shl.b64 %rd10, %rd4, 0;",
                           "cvt.u32.u64 %r10, %rd4; shr.u64 %rd12, %rd4, 32;"
                           "cvt.u32.u64 %r11, %rd12; mov.b64 %rd10, {%r10, %r11};",
                           "abs.s64 %rd10, %rd4;", "mov.b64 {%r10, %r11}, %rd4; mov.b64 %rd10, {%r10, %r11};",
                           "st.shared.u64 [tile], %rd4; ld.shared.u64 %rd10, [tile];"})
    EXPECT_NE(verdict(start + copy + in_place), Verdict::Idempotent) << copy;
}

TEST_F(OriginsTest, WhatIsComputedInSharedMemoryStaysThere) {
  const std::string own = "add.s64 %rd10, %rd9, %rd3; st.u32 [%rd10], %r6; ld.u32 %r7, [%rd10];";
  EXPECT_EQ(
      verdict(std::string("ld.global.u32 %r6, [%rd5];") + shared_word + own + "st.global.u32 [%rd4], %r7;"),
      Verdict::Idempotent);
}

// Written for one array, it goes to the other, by a distance that went through memory.
TEST_F(OriginsTest, ADistanceOfTwoArraysThatGoesThroughMemoryIsFollowed) {
  const std::string way =
      "ld.global.u32 %r6, [%rd5]; add.s32 %r6, %r6, 1; sub.s64 %rd6, %rd2, %rd1; add.s64 %rd6, %rd6, %rd3;";
  const std::string there = "add.s64 %rd7, %rd1, %rd12; st.global.u32 [%rd7], %r6;";
  EXPECT_NE(verdict(way + "st.shared.u64 [tile], %rd6; ld.shared.u64 %rd12, [tile];" + there),
            Verdict::Idempotent);
  EXPECT_NE(verdict(way +
                    "mov.b64 {%r10, %r11}, %rd6; shfl.sync.idx.b32 %r12, %r10, 0, 31, -1;"
                    "shfl.sync.idx.b32 %r13, %r11, 0, 31, -1; mov.b64 %rd12, {%r12, %r13};" +
                    there),
            Verdict::Idempotent);
  EXPECT_NE(verdict("ld.global.u32 %r6, [%rd5]; sub.cc.u32 %r7, 0, 0; mov.b64 {%r8, %r9}, %rd1;"
                    "mov.b64 {%r10, %r11}, %rd2; sub.cc.u32 %r12, %r10, %r8; subc.u32 %r13, %r11, %r9;"
                    "mov.b64 %rd13, {%r12, %r13}; add.s64 %rd12, %rd13, %rd3;" +
                    there),
            Verdict::Idempotent);
}

// The number may come from what is no pointer, and from two that are.
TEST_F(OriginsTest, ANumberThatGoesElsewhereIsNoDistance) {
  EXPECT_EQ(
      verdict("ld.global.u32 %r6, [%rd5]; shfl.sync.idx.b32 %r12, %r1, 0, 31, -1; mul.wide.s32 %rd6, %r12, 4;"
              "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r6;"),
      Verdict::Idempotent);
  const std::string sum =
      "ld.global.u32 %r6, [%rd1+4096]; ld.global.u32 %r7, [%rd1+8192];"
      "mul.wide.s32 %rd6, %r7, 4; add.s64 %rd7, %rd2, %rd6; add.s64 %rd7, %rd7, %rd1;"
      "st.global.u32 [%rd7], %r6;";
  EXPECT_NE(verdict(sum), Verdict::Idempotent);
}

// A pointer need not begin where a word of the parameter block does.
TEST_F(OriginsTest, ADistanceOfPointersInAPackedStructureIsFollowed) {
  const auto module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .align 4 .b8 s[20], .param .u64 a, .param .u64 b)\n{\n"
      ".reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
      "ld.param.b32 %r1, [s+4]; ld.param.b32 %r2, [s+8]; mov.b64 %rd1, {%r1, %r2};\n"
      "ld.param.b32 %r3, [s+12]; ld.param.b32 %r4, [s+16]; mov.b64 %rd2, {%r3, %r4};\n"
      "ld.param.u64 %rd3, [a]; ld.param.u64 %rd4, [b]; sub.s64 %rd5, %rd2, %rd1; add.s64 %rd6, %rd3, %rd5;\n"
      "ld.global.u32 %r5, [%rd6]; add.u32 %r5, %r5, 1; st.global.u32 [%rd4], %r5; ret;\n}\n");
  ASSERT_TRUE(module) << module.error().message;
  const KernelSummary summary = summarise(*module, module->functions.at(0));
  DecisionMemo memo;
  for (const bool are_pointers : {false, true, false}) {
    std::array<std::byte, 40> parameters{};
    const std::uint64_t from = are_pointers ? a : 0;
    const std::uint64_t to = are_pointers ? b : 64;
    std::memcpy(parameters.data() + 4, &from, 8);
    std::memcpy(parameters.data() + 12, &to, 8);
    std::memcpy(parameters.data() + 24, &a, 8);
    std::memcpy(parameters.data() + 32, &b, 8);
    LaunchArguments asked = launch();
    asked.parameters = parameters;
    EXPECT_EQ(memo.decide(summary, asked, 1, workspace).verdict,
              are_pointers ? Verdict::Unknown : Verdict::Idempotent);
  }
}

// The same kernel with a number where there was a pointer is another question.
TEST_F(OriginsTest, TheMemoKnowsWhatMayBeAPointer) {
  const KernelSummary summary = summary_of(
      "mov.b64 {%r10, %r11}, %rd2; shfl.sync.idx.b32 %r12, %r10, 0, 31, -1;"
      "mul.wide.s32 %rd6, %r12, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r6;");
  DecisionMemo memo;
  for (const bool is_pointer : {false, true, false}) {
    second = is_pointer ? b : 64;
    EXPECT_EQ(memo.decide(summary, launch(), 1, workspace).verdict,
              is_pointer ? Verdict::Unknown : Verdict::Idempotent);
  }
}

}  // namespace
}  // namespace firebreak::access
