// SPDX-License-Identifier: Apache-2.0
// Tests of what users of the intermediate representation rely on beyond what the printer shows.
#include "kernels/ptx/parse.h"

#include <gmock/gmock.h>

namespace firebreak::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Module parsed(const std::string& text) {
  Result<Module> module = parse(".version 8.0\n.target sm_80\n.address_size 64\n" + text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? std::move(*module) : Module{};
}

TEST(Parse, RegistersAreNumberedDenselyByFirstUse) {
  const Module module = parsed(".entry k () { .reg .b32 %r<1000000>; add.s32 %r7, %r999999, %r7; }");
  const Function& kernel = module.functions.at(0);
  ASSERT_EQ(kernel.registers.size(), 2U);
  EXPECT_EQ(kernel.registers[0].name, "%r7");
  EXPECT_EQ(kernel.registers[1].name, "%r999999");
  EXPECT_EQ(kernel.instructions[0].operands[2].register_index, 0U);
}

TEST(Parse, NamesInBlocksAreTheirOwn) {
  const Module module = parsed(
      ".entry k () { .reg .b32 x; mov.u32 x, 1; { .reg .b64 x; mov.u64 x, 2; } { .reg .f32 x; mov.f32 x, "
      "3.0; } "
      "mov.u32 x, 4; }");
  const Function& kernel = module.functions.at(0);
  ASSERT_EQ(kernel.registers.size(), 3U);
  EXPECT_EQ(kernel.registers[1].type, Type::B64);
  EXPECT_EQ(kernel.instructions[2].operands[0].register_index, 2U);
  EXPECT_EQ(kernel.instructions[3].operands[0].register_index, 0U);
}

TEST(Parse, InstructionsKnowTheirPlace) {
  const Module module = parsed(".entry k () {\n  .reg .pred p;\n\n  @p trap;\n}\n");
  const Instruction& instruction = module.functions.at(0).instructions.at(0);
  EXPECT_EQ(instruction.location.line, 7U);
  EXPECT_EQ(instruction.location.column, 6U);
}

TEST(Parse, BlockLabelsShadowOuterOnesAndMayComeLater) {
  const Module module = parsed(".entry k () { bra x; { bra x; x: trap; } x: exit; { bra x; } }");
  const std::vector<Instruction>& code = module.functions.at(0).instructions;
  EXPECT_EQ(code[0].operands[0].target, 3U);
  EXPECT_EQ(code[1].operands[0].target, 2U);
  EXPECT_EQ(code[4].operands[0].target, 3U);
}

TEST(Parse, ALabelMayStandAtTheEnd) {
  const Module module = parsed(".entry k () { bra end; end: }");
  EXPECT_EQ(module.functions.at(0).instructions[0].operands[0].target, 1U);
}

TEST(Parse, DeclarationAndDefinitionShareOneIndex) {
  const Module module =
      parsed(".func f (.param .b32 a);\n.entry k () { call f, (1); }\n.func f (.param .b32 b) { ret; }");
  ASSERT_EQ(module.functions.size(), 2U);
  EXPECT_EQ(module.functions[1].calls.at(0).function_index, 0U);
  EXPECT_TRUE(module.functions[0].has_body);
  EXPECT_EQ(module.functions[0].parameters.at(0).name, "b");
}

TEST(Parse, ParametersAreLaidOutAsInC) {
  const Module module =
      parsed(".entry k (.param .u8 a, .param .u64 b, .param .u16 c, .param .align 16 .b8 d[20]) { }");
  std::vector<std::uint64_t> offsets;
  for (const Parameter& parameter : module.functions.at(0).parameters)
    offsets.push_back(parameter.offset_bytes);
  EXPECT_THAT(offsets, ElementsAre(0U, 8U, 16U, 32U));
  EXPECT_EQ(module.functions[0].parameter_bytes, 52U);
}

TEST(Parse, LocalVariablesAndArgumentsHaveOffsets) {
  const Module module = parsed(
      ".entry k () { .local .b8 a[3]; .local .align 8 .b64 b; .param .b8 x; .param .align 16 .b8 y[4]; }");
  const Function& kernel = module.functions.at(0);
  EXPECT_EQ(kernel.variables[1].offset_bytes, 8U);
  EXPECT_EQ(kernel.local_frame_bytes, 16U);
  EXPECT_EQ(kernel.local_frame_alignment_bytes, 8U);
  EXPECT_EQ(kernel.variables[3].offset_bytes, 16U);
  EXPECT_EQ(kernel.argument_area_bytes, 20U);
}

TEST(Parse, CallArgumentsGetTheBitsOfTheFormalType) {
  const Module module = parsed(".func f (.reg .f32 a, .reg .u16 b);\n.entry k () { call f, (1.0, -1); }");
  const Call& call = module.functions.at(1).calls.at(0);
  EXPECT_EQ(call.arguments[0].bits, 0x3f800000U);
  EXPECT_EQ(call.arguments[1].bits, 0xffffU);
}

TEST(Parse, ErrorsNameTheFile) {
  const Result<Module> module = parse("rubbish", "kernels.ptx");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(module.error().message,
            "kernels.ptx:1:1: expected '.version', the first directive before 'rubbish'");
}

TEST(Parse, ManyErrorsInOneSourceGiveTheFirst) {
  const Result<Module> module = parse(".version 8.0\n.target sm_80\n.global .u32 ?;\n.global .u64 !;\n");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().message, HasSubstr("ptx:3:14: "));
}

TEST(Parse, LongInputsOfEveryKindEndInOneError) {
  constexpr std::size_t length = 200'000;
  const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() < length) text += part;
    return text;
  };
  for (const std::string_view part :
       {".a", "(", "{", "[", "-", "!", "a ", "1,", "1?", ".align 4 ", "\"", "|a", "<", "a:"}) {
    for (const std::string_view start :
         {".entry k () { add", ".entry k () { ", ".global .b8 x[] = {", ".global .b8 x[", ".func (", ""}) {
      const Result<Module> module = parse(header + std::string(start) + repeated(part));
      ASSERT_FALSE(module) << start << part;
      EXPECT_LT(module.error().message.size(), 300U);
    }
  }
}

// A file's other kernels can be looked at.
TEST(Parse, WhatIsNotKnownOfOneKernelLeavesTheOthersReadable) {
  const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";
  const std::string good = ".entry good(.param .u64 a)\n{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; ret; }\n";
  for (const std::string& strange :
       {std::string(".entry bad()\n{ .reg .v4 .b32 v; { mov.u32 %r1, 0; } ret; }\n"),
        std::string(".entry bad()\n{ .reg .b32 %r<3>; add.u32 %r1, %r2; ret; }\n"),  // an operand is missing
        std::string(
            ".global .texref picture;\n.entry bad()\n{ .reg .b64 %rd<3>; mov.u64 %rd1, picture; ret; }\n")}) {
    const std::string text = header + strange + good;
    EXPECT_FALSE(parse(text)) << strange;
    const Result<Module> module = parse(text, "test", UnknownInstructions::Kept);
    ASSERT_TRUE(module) << module.error().message;
    const Function& bad = module->functions.at(find_function(*module, "bad"));
    ASSERT_EQ(bad.instructions.size(), 1U) << strange;
    EXPECT_EQ(bad.instructions[0].opcode, Opcode::Opaque);
    EXPECT_TRUE(bad.opaque_instructions.at(0).has_address && bad.opaque_instructions.at(0).may_jump);
    EXPECT_EQ(module->functions.at(find_function(*module, "good")).instructions.size(), 2U) << strange;
  }
  EXPECT_FALSE(parse(header + ".entry bad() { { ret; }\n" + good, "test", UnknownInstructions::Kept));
  EXPECT_FALSE(parse(header + ".global .texref picture", "test", UnknownInstructions::Kept));
}

}  // namespace
}  // namespace firebreak::ptx
