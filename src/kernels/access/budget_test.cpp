// SPDX-License-Identifier: Apache-2.0
// The analysis of any kernel comes to an end soon.
#include "kernels/access/budget.h"

#include <functional>

#include "tests/doubles/access/analysed_launch_test_support.h"

namespace firebreak::access {
namespace {

class BudgetTest : public testing::AnalysedLaunch {
 protected:
  static std::string repeated(int count, const std::function<std::string(const std::string&)>& part) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part(std::to_string(i));
    return text;
  }
  static std::string repeated(int count, const std::string& part) {
    return repeated(count, [&](const std::string&) { return part; });
  }
  // Steps for each instruction, where it is not refused.
  std::uint64_t steps(const std::string& body) {
    const KernelSummary summary = summary_of(body);
    EXPECT_EQ(summary.refusal, "");
    return summary.analysis_steps;
  }
  static std::string registers(int count) { return ".reg .b32 %x<" + std::to_string(count + 1) + ">;"; }
};

constexpr std::uint64_t few = 100'000;

// Values that are made of one value twice, over and over: 2^60 ways lead down.
TEST_F(BudgetTest, AValueThatIsReachedInManyWaysIsLookedAtOnce) {
  EXPECT_LT(steps("mov.u64 %rd6, %rd3;" + repeated(60, "add.s64 %rd6, %rd6, %rd6;") +
                  "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r6, [%rd7]; st.global.u32 [%rd7+4], %r6;"),
            few);
  EXPECT_LT(steps("setp.eq.u32 %p1, %r1, 7; setp.eq.u32 %p2, %r1, 9;" +
                  repeated(60, "and.pred %p3, %p1, %p2; or.pred %p1, %p3, %p2; mov.pred %p2, %p3;") +
                  "@!%p1 st.global.u32 [%rd4], %r1;"),
            few);
  EXPECT_LT(steps("setp.eq.u32 %p1, %r1, 7;" + repeated(60, "and.pred %p1, %p1, %p1;") +
                  "@%p1 st.global.u32 [%rd4], %r1;"),
            few);
}

// Pointers that are moved on where data says so.
TEST_F(BudgetTest, ConditionalIncrementsAreFollowedOnce) {
  EXPECT_LT(steps("mov.u64 %rd6, %rd1;" +
                  repeated(30,
                           [](const std::string& i) {
                             return "ld.global.u32 %r6, [%rd2+" + i +
                                    "0]; setp.eq.u32 %p1, %r6, 0;"
                                    "add.s64 %rd7, %rd6, 4; selp.b64 %rd6, %rd7, %rd6, %p1;\n";
                           }) +
                  "st.global.u32 [%rd6], %r1;"),
            few);
  EXPECT_LT(steps("mov.u64 %rd6, %rd1;" +
                  repeated(32,
                           [](const std::string& i) {
                             return "ld.global.u32 %r6, [%rd2+" + i +
                                    "0]; setp.eq.u32 %p1, %r6, 0; @%p1 bra L" + i +
                                    "; st.global.u32 [%rd6], %r1; add.s64 %rd6, %rd6, 4;\nL" + i + ":\n";
                           }) +
                  "st.global.u32 [%rd6], %r1;"),
            few);
}

TEST_F(BudgetTest, WhatGoesRoundALoopIsFollowedOnce) {
  const auto loop = [](const std::string& body) {
    return "mov.u32 %r10, 0; mov.u32 %r11, 0;\nL: st.global.u32 [%rd4], %r10; ld.global.u32 %r12, [%rd2]; "
           "ld.global.u32 "
           "%r13, [%rd2+4];" +
           body + "mov.u32 %r10, %r12; add.s32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, %r1; @%p1 bra L;";
  };
  EXPECT_LT(steps(loop(repeated(40, "add.s32 %r12, %r12, %r12;"))), few);
  EXPECT_LT(steps(loop(repeated(45, "add.s32 %r12, %r12, %r13; add.s32 %r13, %r13, %r12;"))), few);
}

TEST_F(BudgetTest, LongChainsNeedNoStack) {
  const std::string chain = repeated(75'000, [](const std::string& i) {
    return "setp.ne.u32 %p2, %r1, " + i + "; and.pred %p1, %p1, %p2;\n";
  });
  const std::string start = "setp.eq.u32 %p1, %r1, 7;" + chain;
  EXPECT_LT(summary_of(start + "@%p1 st.global.u32 [%rd4], %r1;").analysis_steps, Budget::most_steps);
  EXPECT_LT(summary_of(start + "@!%p1 bra DONE; st.global.u32 [%rd4], %r1;").analysis_steps,
            Budget::most_steps);
  EXPECT_LT(summary_of("mov.u32 %r6, %r1;" + repeated(100'000, "xor.b32 %r6, %r6, %r4;\n") +
                       "mul.wide.u32 %rd6, %r6, 4; add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r1;")
                .analysis_steps,
            Budget::most_steps);
}

TEST_F(BudgetTest, ReadsOfOwnWordsAreFoundByTheirPlace) {
  EXPECT_LT(summary_of("mov.u64 %rd6, tile; cvta.shared.u64 %rd7, %rd6;" +
                       repeated(90'000,
                                [](const std::string& i) {
                                  return "ld.u32 %r6, [%rd7+" + std::to_string(std::stoi(i) % 60 * 4) +
                                         "];\n";
                                }) +
                       "st.global.u32 [%rd4], %r6;")
                .analysis_steps,
            Budget::most_steps);
}

// A kernel that needs too much is refused, and nothing is said of it.
TEST_F(BudgetTest, WhatIsTooComplicatedIsUnknown) {
  const auto joins = [&](int blocks, int live) {
    return registers(live) +
           repeated(live, [](const std::string& i) { return "add.s32 %x" + i + ", %r1, " + i + ";\n"; }) +
           repeated(blocks,
                    [&](const std::string& i) {
                      const std::string x = "%x" + std::to_string(std::stoi(i) % live);
                      return "setp.eq.u32 %p1, %r1, " + i + "; @%p1 bra L" + i + "; add.s32 " + x + ", " + x +
                             ", 1;\nL" + i + ":\n";
                    }) +
           "mov.u32 %r6, 0;\n" +
           repeated(live, [](const std::string& i) { return "xor.b32 %r6, %r6, %x" + i + ";\n"; }) +
           "st.global.u32 [%rd4], %r6;";
  };
  EXPECT_EQ(summary_of(joins(200, 200)).refusal, "");
  EXPECT_EQ(summary_of(joins(2'000, 2'000)).refusal, too_complicated);
  EXPECT_EQ(summary_of(joins(3'900, 4'000)).refusal, too_complicated);
  EXPECT_EQ(verdict(joins(2'000, 2'000)), Verdict::Unknown);
  const auto nested = [&](int depth) {
    std::string body = registers(depth);
    for (int i = 0; i < depth; ++i)
      body += "mov.u32 %x" + std::to_string(i) + ", 0;\nL" + std::to_string(i) + ":\n";
    body += "st.global.u32 [%rd4], %r1;\n";
    for (int i = depth; i-- > 0;) {
      const std::string x = "%x" + std::to_string(i);
      body += "add.s32 " + x + ", " + x + ", 1; setp.lt.u32 %p1, " + x + ", %r1; @%p1 bra L" +
              std::to_string(i) + ";\n";
    }
    return body;
  };
  EXPECT_EQ(summary_of(nested(20)).refusal, "");
  EXPECT_EQ(summary_of(nested(1'500)).refusal, too_complicated);
}

// Each jump by a table may go to each of its labels.
TEST_F(BudgetTest, TablesOfJumpsAreCounted) {
  const auto tables = [&](int count) {
    const std::string labels = repeated(count, [](const std::string& i) { return ", L" + i; });
    return "T: .branchtargets DONE" + labels + ";\n" +
           repeated(count, [](const std::string& i) { return "L" + i + ": brx.idx %r1, T;\n"; });
  };
  EXPECT_EQ(summary_of(tables(100)).refusal, "it has a loop with two entries");
  EXPECT_EQ(summary_of(tables(1'000)).refusal, "it has more than 100000 jumps");
}

TEST_F(BudgetTest, NoMoreParametersAreKeptThanALaunchHas) {
  const auto refusal = [](const std::string& count) {
    const auto module =
        ptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b8 a[" + count +
                   "])\n{\nret;\n}\n");
    EXPECT_TRUE(module);
    return summarise(*module, module->functions.at(0)).refusal;
  };
  EXPECT_EQ(refusal("32764"), "");
  EXPECT_EQ(refusal("32765"), "its parameters are more than a launch can have");
}

TEST_F(BudgetTest, AnInstructionThatIsNotKnownHasFewOperands) {
  const auto with = [&](int count) {
    return "newop.u32 %r6" + repeated(count, ", %r7") + "; st.global.u32 [%rd4], %r6;";
  };
  EXPECT_EQ(summary_of(with(200)).refusal, "");
  EXPECT_NE(summary_of(with(300)).refusal, "");
}

// Its words are gone: nothing large is kept of what was refused.
TEST_F(BudgetTest, NothingIsKeptOfWhatWasRefused) {
  const KernelSummary refused = summary_of("mov.u32 %r6, %smid; st.global.u32 [%rd4], %r6;");
  EXPECT_NE(refused.refusal, "");
  EXPECT_EQ(refused.values, nullptr);
  EXPECT_TRUE(refused.groups.empty());
}

}  // namespace
}  // namespace firebreak::access
