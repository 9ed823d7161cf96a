// SPDX-License-Identifier: Apache-2.0
// Modules that parse() would never make: each is damaged behind its back, and the pass that is there for it
// must see it.
#include "kernels/ptx/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "kernels/ptx/parse.h"

namespace firebreak::ptx {
namespace {

constexpr std::string_view source = R"(.version 8.0
.target sm_80
.address_size 64
.global .u32 number = 1;
.global .u64 address = number;
.func (.param .b32 out) f (.param .b32 in) { ret; }
.visible .entry k (.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p<2>;
  .param .b32 a;
  add.s32 %r1, %r2, 5;
  ld.global.u32 %r1, [number];
  ld.global.v2.u32 {%r1, %r2}, [%rd1];
  setp.eq.u32 %p1, %r1, %r2;
loop:
  @%p1 bra loop;
  call (%r1), f, (a);
  t: .branchtargets loop;
  brx.idx %r1, t;
}
)";

struct Damage {
  const char* name;
  std::function<void(Module&)> apply;
  Finding (*pass)(const Module&);
};

Function& kernel(Module& module) { return module.functions[1]; }
Instruction& at(Module& module, std::size_t index) { return kernel(module).instructions[index]; }

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all{
      {"Register", [](Module& m) { at(m, 0).operands[1].register_index = 99; }, check_references},
      {"Guard", [](Module& m) { at(m, 4).guard.register_index = 99; }, check_references},
      {"Symbol", [](Module& m) { at(m, 1).operands[1].symbol.index = 99; }, check_references},
      {"SymbolKind", [](Module& m) { at(m, 1).operands[1].symbol.kind = SymbolKind::None; },
       check_references},
      {"Element", [](Module& m) { at(m, 2).operands[0].elements[1].register_index = 99; }, check_references},
      {"OperandKind", [](Module& m) { at(m, 0).operands[0].kind = OperandKind::None; }, check_references},
      {"Opcode", [](Module& m) { at(m, 0).opcode = static_cast<Opcode>(250); }, check_references},
      {"CallIndex", [](Module& m) { at(m, 5).call_index = 99; }, check_references},
      {"Callee", [](Module& m) { kernel(m).calls[0].function_index = 99; }, check_references},
      {"Prototype", [](Module& m) { kernel(m).calls[0].prototype_index = 99; }, check_references},
      {"Argument", [](Module& m) { kernel(m).calls[0].arguments[0].symbol.index = 99; }, check_references},
      {"Table", [](Module& m) { at(m, 6).operands[1].target = 99; }, check_references},
      {"Relocation", [](Module& m) { m.variables[1].relocations[0].symbol.index = 99; }, check_references},
      {"RelocationPlace", [](Module& m) { m.variables[1].relocations[0].offset_bytes = 4; },
       check_references},
      {"InitialBytes", [](Module& m) { m.variables[0].initial.resize(5); }, check_references},
      {"VariableName", [](Module& m) { m.variables[1].name = "number"; }, check_names},
      {"FunctionName", [](Module& m) { m.functions[0].name = "number"; }, check_names},
      {"Alignment", [](Module& m) { m.variables[0].alignment_bytes = 3; }, check_names},
      {"Label", [](Module& m) { at(m, 4).operands[0].target = 99; }, check_labels},
      {"TableTarget", [](Module& m) { kernel(m).branch_tables[0].targets[0] = 99; }, check_labels},
      {"Types", [](Module& m) { at(m, 0).type = Type::Pred; }, check_modifiers},
      {"ModifierTooMany", [](Module& m) { at(m, 0).modifiers.relu = true; }, check_modifiers},
      {"ModifierMissing", [](Module& m) { at(m, 3).modifiers.compare = Compare::None; }, check_modifiers},
      {"OperandType", [](Module& m) { at(m, 0).operands[0].register_index = at(m, 4).guard.register_index; },
       check_types},
      {"OperandCount", [](Module& m) { at(m, 0).operands.pop_back(); }, check_types},
      {"GuardType", [](Module& m) { at(m, 4).guard.register_index = 0; }, check_types},
      {"Combination", [](Module& m) { at(m, 3).modifiers.compare = Compare::Equ; }, check_combinations},
      {"Space", [](Module& m) { at(m, 1).modifiers.space = StateSpace::Shared; }, check_spaces},
      {"VariableSpace", [](Module& m) { m.variables[0].space = StateSpace::Local; }, check_spaces},
      {"Arity", [](Module& m) { at(m, 2).modifiers.vector_arity = 4; }, check_vectors},
      {"CallCount", [](Module& m) { kernel(m).calls[0].arguments.clear(); }, check_calls},
      {"CallKernel", [](Module& m) { kernel(m).calls[0].function_index = 1; }, check_calls},
      {"CallSize", [](Module& m) { kernel(m).variables[0].size_bytes = 8; }, check_calls},
  };
  return all;
}

class ValidateTest : public testing::TestWithParam<Damage> {};

TEST_P(ValidateTest, ThePassSeesIt) {
  Result<Module> module = parse(source);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_FALSE(GetParam().pass(*module).has_value());
  GetParam().apply(*module);
  const Finding problem = GetParam().pass(*module);
  ASSERT_TRUE(problem.has_value());
  EXPECT_GE(problem->location.line, 1U);
  EXPECT_FALSE(problem->message.empty());
  EXPECT_FALSE(validate(*module));
}

INSTANTIATE_TEST_SUITE_P(Damages, ValidateTest, testing::ValuesIn(damages()),
                         [](const auto& damage) { return damage.param.name; });

TEST(Validate, SaysFileAndPlace) {
  Result<Module> module = parse(source);
  ASSERT_TRUE(module);
  at(*module, 0).operands.pop_back();
  const Status status = validate(*module, "k.ptx");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "k.ptx:12:3: 'add.s32' takes 3 operands, not 2");
}

}  // namespace
}  // namespace firebreak::ptx
