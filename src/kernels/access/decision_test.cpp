// SPDX-License-Identifier: Apache-2.0
// Decisions of single launches, their words, and their memo.
#include "kernels/access/decision.h"

#include <gmock/gmock.h>

#include <cstring>

#include "kernels/access/decision_memo.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"

namespace firebreak::access {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view header = ".version 8.0\n.target sm_80\n.address_size 64\n";
// struct {u64 in; u32 skip; u32 n; u64 out;} by value, and a number that does not matter.
constexpr std::string_view copy_text = R"(
.visible .entry copy(.param .align 8 .b8 job[24], .param .f32 unused)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [job];
  ld.param.u64 %rd2, [job+16];
  ld.param.u32 %r1, [job+12];
  ld.param.f32 %f1, [unused];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r6, [%rd4];
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r6;
DONE:
  ret;
}
)";
constexpr std::uint64_t first = 0x7000'0000'0000;
constexpr std::uint64_t second = 0x7000'0100'0000;

struct CopyLaunch {
  std::uint64_t in = first;
  std::uint32_t skip = 0;
  std::uint32_t n = 100;
  std::uint64_t out = second;
  float unused = 0;
};

class DecisionTest : public ::testing::Test {
 protected:
  void SetUp() override { use(std::string(header) + std::string(copy_text)); }

  void use(const std::string& text, ptx::UnknownInstructions unknown = ptx::UnknownInstructions::Refused) {
    auto module = ptx::parse(text, "test", unknown);
    ASSERT_TRUE(module) << module.error().message;
    summary = summarise(*module, module->functions.at(0));
  }

  LaunchArguments launch(const CopyLaunch& copy) {
    parameters.resize(28);
    std::memcpy(parameters.data(), &copy, 28);
    LaunchArguments arguments;
    arguments.grid = {4, 1, 1};
    arguments.block = {32, 1, 1};
    arguments.parameters = parameters;
    arguments.memory = memory;
    return arguments;
  }
  Decision decided(const CopyLaunch& copy) { return decide(summary, launch(copy), workspace); }

  KernelSummary summary;
  DecisionWorkspace workspace;
  std::vector<std::byte> parameters;
  std::vector<MemoryRange> memory{{first, 1 << 16, first}, {second, 1 << 16, second}};
};

TEST_F(DecisionTest, PointersInsideAStructureAreFound) {
  EXPECT_EQ(decided({}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.out = first + 400}).verdict, Verdict::Idempotent);
  const Decision overlap = decided({.out = first + 396});
  EXPECT_EQ(overlap.verdict, Verdict::NotIdempotent);
  EXPECT_EQ(overlap.reason, DecisionReason::Overlap);
  EXPECT_THAT(describe(summary, overlap), HasSubstr("line 22, st.global.u32, operand 1 [job.16 + "));
  EXPECT_THAT(describe(summary, overlap), HasSubstr("writes what line 20, ld.global.u32, operand 2"));
}

TEST_F(DecisionTest, AccessesAConstantApartShareAProgramAndKeepTheirPlaces) {
  std::string text = std::string(header) + std::string(copy_text);
  text.insert(text.find("DONE:\n  ret"), "  st.global.u32 [%rd5+8], %r6;\n  st.global.u32 [%rd5+-4], %r6;\n");
  use(text);
  EXPECT_EQ(summary.groups.size(), 4U);
  EXPECT_EQ(summary.programs.size(), 2U);
  EXPECT_EQ(decided({.in = first + 808, .out = first + 400}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first + 804, .out = first + 400}).verdict, Verdict::NotIdempotent);
  EXPECT_EQ(decided({.in = first, .out = first + 404}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first, .out = first + 400}).verdict, Verdict::NotIdempotent);
}

TEST_F(DecisionTest, WhatLiesBetweenTwoWritesOfOneAllocationIsNotWritten) {
  std::string text = std::string(header) + std::string(copy_text);
  text.insert(text.find("DONE:\n  ret"), "  st.global.u32 [%rd5+8192], %r6;\n");
  use(text);
  EXPECT_EQ(decided({.in = first + 400, .out = first}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first + 396, .out = first}).verdict, Verdict::NotIdempotent);
  EXPECT_EQ(decided({.in = first + 7'792, .out = first}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first + 7'796, .out = first}).verdict, Verdict::NotIdempotent);
}

// Conditions make something of a value that is not so under another one.
TEST_F(DecisionTest, ConditionsDoNotReachIntoEachOthersAccesses) {
  std::string text = std::string(header) + std::string(copy_text);
  text.replace(text.find("%p<2>"), 5, "%p<5>");
  text.insert(text.find("DONE:\n  ret"),
              "  setp.lt.s32 %p3, %r5, 10;\n  @%p3 st.global.u32 [%rd5+4096], %r6;\n"
              "  setp.ge.s32 %p4, %r5, 90;\n  @%p4 st.global.u32 [%rd5+8192], %r6;\n");
  use(text);
  EXPECT_EQ(decided({.in = first + 4'136, .out = first}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first + 4'132, .out = first}).verdict, Verdict::NotIdempotent);
  EXPECT_EQ(decided({.in = first + 8'552 - 400, .out = first}).verdict, Verdict::Idempotent);
  EXPECT_EQ(decided({.in = first + 8'556 - 400, .out = first}).verdict, Verdict::NotIdempotent);
}

TEST_F(DecisionTest, OneMemoryAtTwoAddressesIsOne) {
  memory.back().canonical_address = first;
  EXPECT_EQ(decided({}).verdict, Verdict::NotIdempotent);
  EXPECT_EQ(decided({.out = second + 400}).verdict, Verdict::Idempotent);
}

TEST_F(DecisionTest, BadLaunchesAreUnknownAtOnce) {
  EXPECT_EQ(decided({.out = 0}).reason, DecisionReason::OutsideMemory);
  EXPECT_EQ(decided({.in = ~std::uint64_t{0}}).verdict, Verdict::Unknown);
  LaunchArguments cut = launch({});
  cut.parameters = cut.parameters.first(20);
  EXPECT_EQ(decide(summary, cut, workspace).reason, DecisionReason::ShortParameters);
  LaunchArguments empty = launch({});
  empty.memory = {};
  EXPECT_EQ(decide(summary, empty, workspace).verdict, Verdict::Unknown);
}

TEST_F(DecisionTest, TheMemoKnowsWhatMatters) {
  DecisionMemo memo;
  const auto ask = [&](const CopyLaunch& copy, std::uint64_t version) {
    return memo.decide(summary, launch(copy), version, workspace).verdict;
  };
  EXPECT_EQ(ask({}, 1), Verdict::Idempotent);
  EXPECT_EQ(ask({.skip = 5, .unused = 7.0F}, 1), Verdict::Idempotent);  // the arguments are never looked at
  EXPECT_EQ(memo.hits(), 1U);
  EXPECT_EQ(ask({.out = first}, 1), Verdict::NotIdempotent);
  EXPECT_EQ(ask({.n = 99}, 1), Verdict::Idempotent);
  memory.back().canonical_address = first;
  EXPECT_EQ(ask({}, 2), Verdict::NotIdempotent);
  EXPECT_EQ(memo.hits(), 1U);
  LaunchArguments wider = launch({});
  wider.grid[1] = 2;
  memo.decide(summary, wider, 2, workspace);
  EXPECT_EQ(memo.hits(), 1U);
}

// The questions are more than the memo has places: some take each other's.
TEST_F(DecisionTest, TheMemoNeverAnswersAnotherQuestion) {
  DecisionMemo memo;
  int idempotent = 0;
  for (std::uint32_t i = 0; i < 4'000; ++i) {
    LaunchArguments asked = launch({.n = 1'000'000, .out = first + 32'000});
    asked.grid[0] = i * 7'919 % 1'000 + 1;
    const Verdict verdict = memo.decide(summary, asked, 1, workspace).verdict;
    ASSERT_EQ(verdict, decide(summary, asked, workspace).verdict) << asked.grid[0];
    idempotent += verdict == Verdict::Idempotent ? 1 : 0;
  }
  EXPECT_EQ(idempotent, 4 * 250);
}

TEST_F(DecisionTest, UnknownInstructionsMatterWhereTheyMayTouchMemory) {
  const auto with = [this](const std::string& extra) {
    std::string text = std::string(header) + std::string(copy_text);
    text.insert(text.find("  mul.wide"), extra);
    use(text, ptx::UnknownInstructions::Kept);
  };
  with("  frobnicate.f32 %f1, %f1;\n");
  EXPECT_EQ(decided({}).verdict, Verdict::Idempotent);
  with("  frobnicate.global.f32 [%rd1], %f1;\n");
  EXPECT_EQ(decided({}).reason, DecisionReason::Refused);
  EXPECT_THAT(describe(summary, decided({})), HasSubstr("'frobnicate.global.f32' is not known"));
  with("  frobnicate.u32 %r5;\n");  // the index may be anything now, and another one the next time
  EXPECT_EQ(decided({}).reason, DecisionReason::ByOrder);
  EXPECT_EQ(decided({.out = first + 400}).reason, DecisionReason::WideOverlap);
}

TEST_F(DecisionTest, AClockMakesAKernelUnknown) {
  std::string text = std::string(header) + std::string(copy_text);
  text.insert(text.find("  mul.wide"), "  mov.u32 %r7, %clock;\n");
  use(text);
  EXPECT_EQ(decided({}).reason, DecisionReason::Refused);
  EXPECT_THAT(explain(summary), HasSubstr("unknown for each launch: line 18: it reads a clock"));
}

TEST_F(DecisionTest, ExplainSaysOnWhatItDepends) {
  const std::string text = explain(summary);
  EXPECT_THAT(
      text, HasSubstr("line 20: ld.global.u32 reads [job + ((tid.x + (ctaid.x*ntid.x))*4), 4 bytes] where "));
  EXPECT_THAT(text,
              HasSubstr("idempotent, unless\n    what is written at job.16 meets what is read at job\n"));
}

}  // namespace
}  // namespace firebreak::access
