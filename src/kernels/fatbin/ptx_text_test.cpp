// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/ptx_text.h"

#include <gmock/gmock.h>

namespace firebreak::fatbin {
namespace {

Code read(const std::string& text) { return code_of_ptx(".version 7.0\n" + text); }

Variable variable_of(const std::string& text) {
  const Code code = read(text);
  EXPECT_EQ(code.obstacle, std::nullopt) << text;
  EXPECT_EQ(code.variables.size(), 1U) << text;
  return code.variables.empty() ? Variable{} : code.variables[0];
}

TEST(PtxText, VariablesAreThoseThatAreDeclared) {
  const Code code = read(
      ".visible .global .align 4 .u32 steps = 0;\n.global .v4 .f32 text[4][2];\n.const .f64 pi;\n"
      ".entry f() { ld.global.u32 %r1, [steps]; ld.const.u32 %r2, [pi]; }");
  EXPECT_EQ(code.obstacle, std::nullopt);
  ASSERT_EQ(code.variables.size(), 3U);
  EXPECT_EQ(code.variables[0].name, "steps");
  EXPECT_EQ(code.variables[0].size_bytes, 4U);
  EXPECT_FALSE(code.variables[0].is_local);
  EXPECT_TRUE(code.variables[0].may_change());
  EXPECT_EQ(code.variables[1].size_bytes, 16U * 8U);
  EXPECT_TRUE(code.variables[1].is_local);
  EXPECT_FALSE(code.variables[1].may_change()) << "nothing names it";
  EXPECT_EQ(code.variables[2].memory, VariableSpace::Constant);
  EXPECT_FALSE(code.variables[2].may_change());
}

TEST(PtxText, SeveralMayStandInOneDeclaration) {
  const Code code = read(".global .b8 first[4] = {1, 2, 3, 4}, second;");
  ASSERT_EQ(code.variables.size(), 2U);
  EXPECT_EQ(code.variables[0].size_bytes, 4U);
  EXPECT_EQ(code.variables[1].name, "second");
}

TEST(PtxText, CommentsAndTextsAreNothing) {
  EXPECT_TRUE(
      read("// .global .u32 a;\n/* .global .u32 b; */\n.file 1 \".global .u32 c;\"\n").variables.empty());
  EXPECT_FALSE(variable_of(".global .u32 a; // a\n/* a */").is_reached);
}

TEST(PtxText, AnInstructionIsNoDeclaration) {
  EXPECT_TRUE(read(".entry f() { ld.global.u32 %r1, [%rd1]; st.global.v2.u32 [%rd1], {%r1, %r2}; }")
                  .variables.empty());
}

TEST(PtxText, LiteralsOfTheCompilerDoNotChange) {
  EXPECT_FALSE(variable_of(".global .align 1 .b8 $str[3] = {104, 105};\n mov.u64 %r, $str;").may_change());
  EXPECT_TRUE(variable_of(".global .align 1 .b8 $str[3];\n mov.u64 %r, $str;").may_change());
}

TEST(PtxText, WhatCannotBeCopiedIsSaid) {
  const auto obstacle = [](const std::string& text) { return read(text).obstacle; };
  EXPECT_EQ(obstacle(".global .attribute(.managed) .u32 a;"), Obstacle::Managed);
  EXPECT_EQ(obstacle(".global .texref a;"), Obstacle::TextureReferences);
  EXPECT_EQ(obstacle(".extern .global .u32 a;"), Obstacle::NotLinked);
  EXPECT_EQ(obstacle(".global .u64 a[2] = {0, f};"), Obstacle::KeepsAddresses);
  EXPECT_EQ(obstacle(".global .u32 a; .global .u32 a;"), Obstacle::SameName);
  EXPECT_EQ(obstacle(".extern .func (.param .b64 result) malloc (.param .b64 a);"), Obstacle::DeviceHeap);
  EXPECT_EQ(obstacle(".extern .func free (.param .b64 a);"), Obstacle::DeviceHeap);
  EXPECT_EQ(obstacle(".extern .func (.param .b32 result) vprintf (.param .b64 a);"), std::nullopt);
  EXPECT_EQ(obstacle(".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a);"),
            Obstacle::LaunchesKernels);
  EXPECT_EQ(obstacle(".extern .func other;"), Obstacle::UnknownFunction);
}

TEST(PtxText, WhatEndsTooEarlyIsDamaged) {
  for (const char* const text : {".global .u32", ".global .u32 a", ".global .b8 a[4", "/* ", ".extern .func"})
    EXPECT_EQ(read(text).obstacle, Obstacle::Malformed) << text;
  EXPECT_EQ(code_of_ptx("something else").obstacle, Obstacle::Malformed) << "it has no version";
}

}  // namespace
}  // namespace firebreak::fatbin
