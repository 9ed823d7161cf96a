// SPDX-License-Identifier: Apache-2.0
// Tests with nvcc's own output for testdata/*.cu, unchanged.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kernels/ptx/dump.h"
#include "kernels/ptx/parse.h"

namespace firebreak::ptx {
namespace {

using testing::HasSubstr;

Module parse_file(const std::string& name) {
  std::ifstream file(std::string(FIREBREAK_PTX_TESTDATA) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  Result<Module> module = parse(text.str(), name);
  EXPECT_TRUE(module) << module.error().message;
  return module ? std::move(*module) : Module{};
}

std::ptrdiff_t count(const Function& function, Opcode opcode) {
  return std::count_if(function.instructions.begin(), function.instructions.end(),
                       [&](const Instruction& instruction) { return instruction.opcode == opcode; });
}

TEST(Nvcc, ReduceHasItsVariablesParametersAndCalls) {
  const Module module = parse_file("reduce.ptx");
  EXPECT_EQ(module.target_sm, 80U);
  const std::uint32_t kernel_index = find_function(module, "reduce");
  ASSERT_NE(kernel_index, no_index);
  const Function& kernel = module.functions[kernel_index];
  EXPECT_TRUE(kernel.is_entry);
  EXPECT_EQ(kernel.parameter_bytes, 20U);
  EXPECT_EQ(kernel.bounds.maxntid[0], 256U);
  EXPECT_EQ(kernel.bounds.minnctapersm, 2U);
  EXPECT_GE(count(kernel, Opcode::ShflSync), 5);
  EXPECT_EQ(count(kernel, Opcode::BarSync), 1);
  ASSERT_EQ(kernel.calls.size(), 1U);
  EXPECT_THAT(module.functions[kernel.calls[0].function_index].name, HasSubstr("scaled"));
  const std::uint32_t tile = find_variable(module, "tile");
  ASSERT_NE(tile, no_index);
  EXPECT_EQ(module.variables[tile].space, StateSpace::Shared);
  EXPECT_EQ(module.variables[tile].size_bytes, 0U);
  const std::uint32_t address = find_variable(module, "finished_address");
  ASSERT_NE(address, no_index);
  ASSERT_EQ(module.variables[address].relocations.size(), 1U);
  EXPECT_TRUE(module.variables[address].relocations[0].generic);
  EXPECT_EQ(module.variables[address].relocations[0].symbol.index, find_variable(module, "finished"));
}

TEST(Nvcc, AttentionHasALocalFrameAndVectorAccesses) {
  const Module module = parse_file("attention.ptx");
  const std::uint32_t index = find_function(module, "scores");
  ASSERT_NE(index, no_index);
  const Function& kernel = module.functions[index];
  EXPECT_GE(kernel.local_frame_bytes, 32U);
  ASSERT_EQ(kernel.parameters.size(), 4U);
  EXPECT_EQ(kernel.parameters[3].size_bytes, 12U);
  EXPECT_EQ(kernel.parameters[3].offset_bytes, 24U);
  EXPECT_EQ(count(kernel, Opcode::ReduxSync), 1);
  EXPECT_EQ(count(kernel, Opcode::Trap), 1);
  const std::string text = dump(module);
  EXPECT_THAT(text, HasSubstr("st.global.v4.f32"));
  EXPECT_THAT(text, HasSubstr("cvt.f32.f16"));
}

}  // namespace
}  // namespace firebreak::ptx
