// SPDX-License-Identifier: Apache-2.0
// A case that no rule names is unknown.
#include "tests/doubles/access/analysed_launch_test_support.h"

namespace firebreak::access {
namespace {

using testing::b;

class UnknownTest : public testing::AnalysedLaunch {
 protected:
  static constexpr const char* call =
      "ld.global.u32 %r6, [%rd4]; { .param .b64 p0; st.param.b64 [p0], %rd4;"
      "call.uni finish, (p0); }";
};

TEST_F(UnknownTest, AFunctionThatEndsTheThreadMayWriteBefore) {
  const std::string body = "{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [x]; st.global.u32 [%rd1], 1; exit; }\n";
  EXPECT_EQ(verdict(call, ".func finish(.param .b64 x) .noreturn " + body), Verdict::Unknown);
  EXPECT_EQ(verdict(call, ".extern .func finish(.param .b64 x) .noreturn;\n"), Verdict::Unknown);
}

TEST_F(UnknownTest, OnlyTheSystemsOwnAssertionIsKnown) {
  const std::string own =
      "ld.global.u32 %r6, [%rd4]; setp.eq.s32 %p1, %r6, 0; @%p1 bra DONE;"
      "{ .param .b64 p0; st.param.b64 [p0], %rd4; call.uni __assertfail, (p0); }";
  EXPECT_EQ(verdict(own,
                    ".func __assertfail(.param .b64 x) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [x];"
                    "st.global.u32 [%rd1], 1; ret; }\n"),
            Verdict::Unknown);
  EXPECT_EQ(verdict(own, ".extern .func __assertfail(.param .b64 x) .noreturn;\n"), Verdict::Idempotent);
}

TEST_F(UnknownTest, AnInstructionThatNobodyKnowsMayTouchAnything) {
  EXPECT_EQ(verdict("ld.global.u32 %r6, [%rd4]; strange.global.u32 [%rd4], %r6;"), Verdict::Unknown);
  // The computed value may be anything.
  EXPECT_NE(verdict("ld.global.u32 %r6, [%rd2]; mov.u64 %rd6, %rd4; strange.b64 %rd6, %rd5;"
                    "st.global.u32 [%rd6], %r6;"),
            Verdict::Idempotent);
}

TEST_F(UnknownTest, AnInstructionThatNobodyKnowsMayEndTheThread) {
  const std::string store = "st.global.u32 [%rd4], %r5;";
  EXPECT_FALSE(effects("add.u32 %r6, %r5, 1;" + store).certain_writes.empty());
  EXPECT_TRUE(effects("strange;" + store).certain_writes.empty());
  EXPECT_TRUE(effects("setp.eq.u32 %p1, %r5, 3; @%p1 strange.u32 %r6;" + store).certain_writes.empty());
  EXPECT_FALSE(effects(store + "strange;").certain_writes.empty());
}

// Numbers below zero become zero: then the place is another one.
TEST_F(UnknownTest, AModifierThatIsNotModelledMakesAValueUnknown) {
  EXPECT_NE(verdict("sub.s32 %r6, %r4, 64; min.s32.relu %r7, %r6, 0; mul.wide.s32 %rd6, %r7, 4;"
                    "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r8, [%rd1+4]; st.global.u32 [%rd7+4], %r8;"),
            Verdict::Idempotent);
}

// Both are the first variable of where they are declared.
TEST_F(UnknownTest, TheModulesMemoryAndTheFunctionsAreTwo) {
  EXPECT_NE(verdict("mov.u64 %rd6, all; mov.u64 %rd7, tile; setp.eq.u64 %p1, %rd6, %rd7; @%p1 bra DONE;"
                    "ld.global.u32 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u32 [%rd4], %r6;",
                    ".extern .shared .align 4 .b8 all[];\n"),
            Verdict::Idempotent);
}

TEST_F(UnknownTest, AGenericAddressIsAnotherNumberThanTheOneInItsSpace) {
  const std::string own = ".shared .align 4 .b8 own[64]; mov.u64 %rd6, own; cvta.shared.u64 %rd7, %rd6;";
  const std::string in_place =
      "@%p1 bra DONE; ld.global.u32 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u32 [%rd4], %r6;";
  EXPECT_NE(verdict(own + "setp.eq.u64 %p1, %rd6, %rd7;" + in_place), Verdict::Idempotent);
  EXPECT_EQ(verdict(own + "cvta.to.shared.u64 %rd8, %rd7; setp.eq.u64 %p1, %rd6, %rd8;" + in_place),
            Verdict::Idempotent);
}

TEST_F(UnknownTest, ConstantMemoryMayBeWrittenAtItsOtherAddress) {
  const std::string table = ".const .align 4 .b8 table[1024];\n";
  const std::string read = "ld.const.u32 %r6, [table+4]; add.s32 %r6, %r6, 1;";
  const std::string alias =
      "mov.u64 %rd6, table; cvta.const.u64 %rd7, %rd6; add.s64 %rd8, %rd7, %rd3;"
      "cvta.to.global.u64 %rd9, %rd8; st.global.u32 [%rd9], %r6;";
  EXPECT_NE(verdict(read + alias, table), Verdict::Idempotent);
  // A known place is compared.
  memory.push_back({0x7000'0200'0000, 1024, 0x7000'0200'0000});
  variable_addresses = {0x7000'0200'0000};
  EXPECT_EQ(verdict(read + alias, table), Verdict::NotIdempotent);
  first = 0x7000'0200'0000;
  EXPECT_EQ(verdict(read + "st.global.u32 [%rd4], %r6;", table), Verdict::NotIdempotent);
  EXPECT_EQ(
      verdict("cvt.u32.u64 %r7, %rd3; mov.u32 %r8, table; add.s32 %r7, %r7, %r8; ld.const.u32 %r6, [%r7];"
              "st.global.u32 [%rd4], %r6;",
              table),
      Verdict::NotIdempotent);
  EXPECT_EQ(verdict(read + "st.global.u32 [%rd5], %r6;", table), Verdict::Idempotent);
}

// The read is of none of the launch's memory then, and a write has to be shown to stay in that.
TEST_F(UnknownTest, ConstantMemoryWhosePlaceIsNotKnownLiesBesideAllMemory) {
  const std::string table = ".const .align 4 .b8 table[1024];\n";
  const std::string read = "ld.const.u32 %r6, [table+4];";
  EXPECT_EQ(verdict(read + "st.global.u32 [%rd5], %r6;", table), Verdict::Idempotent);
  second = b + (1 << 16) - 256;
  EXPECT_NE(verdict(read + "st.global.u32 [%rd5], %r6;", table), Verdict::Idempotent);
  EXPECT_EQ(verdict("mov.u32 %r6, 1; st.global.u32 [%rd5], %r6;", table), Verdict::Idempotent);
}

TEST_F(UnknownTest, WhereAKernelRunsIsNotTheSameWhenItRunsAgain) {
  for (const char* which : {"%smid", "%nsmid", "%warpid", "%clock", "%gridid"})
    EXPECT_EQ(verdict("mov.u32 %r6, " + std::string(which) + "; st.global.u32 [%rd4], %r6;"),
              Verdict::Unknown)
        << which;
  EXPECT_EQ(verdict("mov.u32 %r6, %dynamic_smem_size; st.global.u32 [%rd4], %r6;"), Verdict::Idempotent);
}

}  // namespace
}  // namespace firebreak::access
