// SPDX-License-Identifier: Apache-2.0
// Launches whose outcome depends on which thread comes first: a torn run and another one may leave together
// what no run leaves.
#include "tests/doubles/access/analysed_launch_test_support.h"

namespace firebreak::access {
namespace {

class OrderTest : public testing::AnalysedLaunch {};

constexpr const char* lead =
    "st.volatile.global.u32 [%rd1], %r5; bar.sync 0; ld.volatile.global.u32 %r6, [%rd1];"
    "setp.ne.s32 %p1, %r6, %r5; @%p1 bra DONE; st.global.u32 [%rd5], 1;";

TEST_F(OrderTest, WhatAThreadReadsBackMayBeAnothersWord) {
  EXPECT_NE(verdict(lead), Verdict::Idempotent);
  EXPECT_NE(verdict("st.global.u32 [%rd1], %r5; bar.sync 0; ld.global.u32 %r6, [%rd1];"
                    "setp.ne.s32 %p1, %r6, %r5; @%p1 bra DONE; st.global.u32 [%rd5], 1;"),
            Verdict::Idempotent);
  EXPECT_NE(verdict("st.global.u32 [%rd1], %r5; ld.global.u32 %r6, [%rd1]; and.b32 %r6, %r6, 255;"
                    "mul.wide.u32 %rd6, %r6, 4; add.s64 %rd7, %rd2, %rd6; st.global.u32 [%rd7], 1;"),
            Verdict::Idempotent);
}

TEST_F(OrderTest, WhatAThreadReadsBackOfItsOwnIsItsOwn) {
  EXPECT_EQ(verdict("st.global.u32 [%rd4], %r5; ld.global.u32 %r6, [%rd4]; setp.ne.s32 %p1, %r6, 7;"
                    "@%p1 bra DONE; st.global.u32 [%rd5], 1;"),
            Verdict::Idempotent);
}

// It goes through a cache that does not follow stores, or happens some time later.
TEST_F(OrderTest, ALoadThatNeedNotSeeTheThreadsOwnStoreReadsWhatWasThere) {
  const std::string store = "st.global.u32 [%rd4], %r5;";
  EXPECT_EQ(verdict(store + "ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;"), Verdict::Idempotent);
  EXPECT_NE(verdict(store + "ld.global.nc.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;"), Verdict::Idempotent);
  EXPECT_NE(verdict(store + "ldu.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;"), Verdict::Idempotent);
  EXPECT_NE(verdict("mov.u32 %r9, tile;" + store + "cp.async.ca.shared.global [%r9], [%rd4], 4;"),
            Verdict::Idempotent);
}

// The words are all written in any run.
TEST_F(OrderTest, WhereOrderChoosesOnlyTheValueItIsHarmless) {
  EXPECT_EQ(verdict("st.global.u32 [%rd1], %r5; ld.global.u32 %r6, [%rd1]; st.global.u32 [%rd5], %r6;"),
            Verdict::Idempotent);
  EXPECT_EQ(verdict("atom.shared.add.u32 %r6, [tile], 1; st.global.u32 [%rd5], %r6;"), Verdict::Idempotent);
}

TEST_F(OrderTest, AnAtomicInSharedMemoryMayChooseWhoWrites) {
  const std::string who = "setp.ne.s32 %p1, %r6, 0; @%p1 bra DONE; st.global.u32 [%rd5], 1;";
  const std::string where =
      "and.b32 %r7, %r6, 255; mul.wide.u32 %rd6, %r7, 4; add.s64 %rd7, %rd2, %rd6;"
      "st.global.u32 [%rd7], 1;";
  for (const std::string& then : {who, where}) {
    EXPECT_NE(verdict("atom.shared.add.u32 %r6, [tile], 1;" + then), Verdict::Idempotent);
    EXPECT_NE(verdict("mov.u64 %rd8, tile; cvta.shared.u64 %rd9, %rd8; atom.add.u32 %r6, [%rd9], 1;" + then),
              Verdict::Idempotent);
    EXPECT_NE(verdict("activemask.b32 %r6;" + then), Verdict::Idempotent);
    // The access is no atomic, but the last of several threads wins.
    EXPECT_NE(
        verdict("st.shared.u32 [tile], %r4; bar.sync 0; ld.shared.u32 %r6, [tile]; sub.s32 %r6, %r6, %r4;" +
                then),
        Verdict::Idempotent);
    EXPECT_NE(verdict("ld.volatile.global.u32 %r6, [%rd1];" + then), Verdict::Idempotent);
  }
}

// A word of shared memory has what the last of its writers has left.
TEST_F(OrderTest, ValuesOfSharedMemoryMayDependOnOrder) {
  const OperationEffects shared =
      effects("st.shared.u32 [tile], %r4; bar.sync 0; ld.shared.u32 %r6, [tile]; st.global.u32 [%rd5], %r6;");
  EXPECT_TRUE(shared.values_may_race);
  EXPECT_FALSE(shared.may_race);  // their places do not
  EXPECT_FALSE(effects("ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;").values_may_race);
}

TEST_F(OrderTest, InstructionsThatAreNotKnownMayChooseWhoWrites) {
  const std::string who = "setp.ne.s32 %p1, %r6, 0; @%p1 bra DONE; st.global.u32 [%rd5], 1;";
  EXPECT_NE(verdict("mov.u32 %r6, 0; strange.op.b32 %r6, %r4;" + who), Verdict::Idempotent);
  EXPECT_NE(verdict("mov.u32 %r7, tile; atom.shared::cluster.add.u32 %r6, [%r7], 1;" + who),
            Verdict::Idempotent);
}

}  // namespace
}  // namespace firebreak::access
