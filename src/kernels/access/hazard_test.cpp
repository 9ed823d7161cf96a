// SPDX-License-Identifier: Apache-2.0
// A launch that may have ended a domain is not done again.
#include "kernels/access/hazard.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/ptx/parse.h"

namespace firebreak::access {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t a = 0x7000'0000'0000;

// %rd1 is the pointer, %r1 is n, %r2 the thread's place in the grid, %rd3 the address of its word.
std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n"
         ".shared .align 16 .b8 tile[64];\n"
         "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];\n"
         "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r2, %r3, %r4, %r5;\n"
         "mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;\n" +
         body + "\nDONE: ret;\n}\n";
}

// Returns the hazard of 4 blocks of 32 threads in 512 bytes of memory: empty where it is harmless.
std::string hazard(const std::string& body, std::uint32_t n = 128, std::uint64_t address = a) {
  const auto module = ptx::parse(kernel(body), "test", ptx::UnknownInstructions::Kept);
  EXPECT_TRUE(module) << module.error().message;
  if (!module) return "no module";
  const KernelSummary summary = summarise(*module, module->functions.at(0));
  std::vector<std::byte> parameters(12);
  std::memcpy(parameters.data(), &address, 8);
  std::memcpy(parameters.data() + 8, &n, 4);
  const std::vector<MemoryRange> memory{{a, 512, a}};
  LaunchArguments launch;
  launch.grid = {4, 1, 1};
  launch.block = {32, 1, 1};
  launch.parameters = parameters;
  launch.memory = memory;
  DecisionWorkspace workspace;
  return find_hazard(summary, launch, workspace);
}

TEST(HazardTest, WhatStaysInItsMemoryHasNone) {
  EXPECT_EQ(hazard("st.global.u32 [%rd3], %r1;"), "");
  EXPECT_EQ(hazard("ld.global.u32 %r6, [%rd3]; st.global.u32 [%rd3], %r6;"), "");
  EXPECT_EQ(hazard("st.global.v2.u32 [%rd1+8], {%r1, %r1};"), "");
}

TEST(HazardTest, AWordBeyondTheMemoryIsOne) {
  EXPECT_THAT(hazard("st.global.u32 [%rd3+4], %r1;"), HasSubstr("stay in the process's memory"));
  EXPECT_THAT(hazard("st.global.u32 [%rd3+-4], %r1;"), HasSubstr("stay in the process's memory"));
  EXPECT_THAT(hazard("ld.global.u32 %r6, [%rd3+4];"), HasSubstr("stay in the process's memory"))
      << "reads fault, too";
}

TEST(HazardTest, AGuardKeepsItInside) {
  const std::string guarded = "setp.ge.s32 %p1, %r2, %r1; @%p1 bra DONE; st.global.u32 [%rd3+4], %r1;";
  EXPECT_EQ(hazard(guarded, 127), "");
  EXPECT_THAT(hazard(guarded, 128), HasSubstr("stay in the process's memory"));
}

TEST(HazardTest, APlaceThatMemorySaysMayBeAnywhere) {
  EXPECT_THAT(hazard("ld.global.u32 %r6, [%rd3]; mul.wide.u32 %rd4, %r6, 4; add.s64 %rd5, %rd1, %rd4;"
                     "st.global.u32 [%rd5], %r1;"),
              HasSubstr("stay in the process's memory"));
}

TEST(HazardTest, AMisalignedAddressIsOne) {
  EXPECT_THAT(hazard("ld.global.u32 %r6, [%rd1+1];"), HasSubstr("misaligned"));
  EXPECT_THAT(hazard("st.global.u32 [%rd1+4], %r1;", 128, a + 2), HasSubstr("misaligned"));
  EXPECT_THAT(hazard("st.global.v2.u32 [%rd1+4], {%r1, %r1};"), HasSubstr("misaligned"));
  EXPECT_THAT(hazard("mul.wide.s32 %rd4, %r5, 2; add.s64 %rd5, %rd1, %rd4; ld.global.u32 %r6, [%rd5];"),
              HasSubstr("misaligned"))
      << "by its stride";
}

TEST(HazardTest, WhatStopsOrCallsOrIsNotKnownIsOne) {
  EXPECT_THAT(hazard("setp.eq.u32 %p1, %r1, 0; @%p1 trap;"), HasSubstr("exception"));
  EXPECT_THAT(hazard("brkpt;"), HasSubstr("exception"));
  EXPECT_THAT(hazard("wobble.u32 %r6, %r1;"), HasSubstr("not known"));
}

// An index beyond the table goes anywhere.
TEST(HazardTest, AJumpByATableIsOne) {
  EXPECT_THAT(hazard("T: .branchtargets DONE, DONE; brx.idx %r2, T;"), HasSubstr("jumps by a table"));
}

TEST(HazardTest, WhatMayUseUpTheStackIsOne) {
  EXPECT_THAT(hazard("alloca.u64 %rd5, 64;"), HasSubstr("stack"));
  EXPECT_THAT(hazard("stackrestore.u64 %rd5;"), HasSubstr("stack"));
}

TEST(HazardTest, WhatTalksWithOthersIsOne) {
  EXPECT_THAT(hazard("ld.volatile.global.u32 %r6, [%rd3];"), HasSubstr("ordered"));
  EXPECT_THAT(hazard("ld.acquire.gpu.global.u32 %r6, [%rd3];"), HasSubstr("ordered"));
  EXPECT_THAT(hazard("st.relaxed.sys.global.u32 [%rd3], %r1;"), HasSubstr("ordered"));
}

TEST(HazardTest, AComputedPlaceInSharedMemoryIsOne) {
  EXPECT_EQ(hazard("st.shared.u32 [tile+60], %r1; ld.shared.u32 %r6, [tile];"), "");
  EXPECT_THAT(hazard("st.shared.u32 [tile+64], %r1;"), HasSubstr("computed place"));
  EXPECT_THAT(hazard("ld.shared.u32 %r6, [tile+2];"), HasSubstr("computed place"));
  EXPECT_THAT(hazard("mov.u32 %r7, tile; add.u32 %r7, %r7, %r1; st.shared.u32 [%r7], %r1;"),
              HasSubstr("computed place"));
  EXPECT_THAT(hazard("mov.u64 %rd6, tile; cvta.shared.u64 %rd7, %rd6; cvt.u64.u32 %rd8, %r1;"
                     "add.u64 %rd7, %rd7, %rd8; st.u32 [%rd7], %r1;"),
              HasSubstr("computed place"))
      << "by a generic address";
  EXPECT_THAT(hazard("atom.shared.add.u32 %r6, [tile], 1;"), HasSubstr("computed place"));
}

TEST(HazardTest, ABarrierThatIsComputedIsOne) {
  EXPECT_EQ(hazard("bar.sync 0;"), "");
  EXPECT_EQ(hazard("bar.sync 15, 32;"), "");
  EXPECT_THAT(hazard("bar.sync 16;"), HasSubstr("barrier"));
  EXPECT_THAT(hazard("bar.sync 0, 33;"), HasSubstr("barrier"));
  EXPECT_THAT(hazard("bar.sync 0, 0;"), HasSubstr("barrier"));
  EXPECT_THAT(hazard("bar.sync 0, %r1;"), HasSubstr("barrier"));
  EXPECT_THAT(hazard("bar.sync %r1;"), HasSubstr("barrier"));
  EXPECT_THAT(hazard("bar.arrive 0, 64;"), HasSubstr("barrier"));
}

TEST(HazardTest, AComputedPlaceInConstantMemoryIsOne) {
  EXPECT_THAT(hazard("cvt.u64.u32 %rd6, %r1; ld.const.u32 %r6, [%rd6];"), HasSubstr("constant memory"));
}

TEST(HazardTest, FewerParametersThanTheKernelHasAreOne) {
  const auto module = ptx::parse(kernel("st.global.u32 [%rd3], %r1;"));
  ASSERT_TRUE(module);
  const KernelSummary summary = summarise(*module, module->functions.at(0));
  DecisionWorkspace workspace;
  EXPECT_THAT(find_hazard(summary, LaunchArguments{}, workspace), HasSubstr("fewer parameters"));
}

}  // namespace
}  // namespace firebreak::access
