// SPDX-License-Identifier: Apache-2.0
// The tables are consistent: what the code relies on when it looks something up in them.
#include <gtest/gtest.h>

#include <set>

#include "kernels/ptx/modifier_table.h"
#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

TEST(Tables, EveryOpcodeHasVariantsThatStandTogether) {
  for (int opcode = 0; opcode <= static_cast<int>(Opcode::Vabsdiff4); ++opcode)
    EXPECT_FALSE(variants_of(static_cast<Opcode>(opcode)).empty()) << opcode;
  std::size_t counted = 0;
  std::set<Opcode> seen;
  for (const InstructionVariant& variant : instruction_variants())
    if (seen.insert(variant.opcode).second) counted += variants_of(variant.opcode).size();
  EXPECT_EQ(counted, instruction_variants().size());
}

TEST(Tables, OperandFormsUseOnlyKnownRules) {
  for (const InstructionVariant& variant : instruction_variants())
    for (const OperandSpec& spec : parse_form(variant.operands.substr(0, variant.operands.find('/'))))
      EXPECT_NE(std::string_view("0123wuslbpqcvVManmiLT").find(spec.rule), std::string_view::npos)
          << variant.name;
}

TEST(Tables, RequiredModifiersAreNotAlsoOptional) {
  for (const InstructionVariant& variant : instruction_variants())
    EXPECT_EQ(variant.allowed & variant.required, 0U) << variant.name;
}

TEST(Tables, TheLongestNameWins) {
  std::size_t length = 0;
  EXPECT_EQ(find_by_prefix("shfl.sync.down.b32", length)->opcode, Opcode::ShflSync);
  EXPECT_EQ(length, 9U);
  EXPECT_EQ(find_by_prefix("shfl.down.b32", length)->opcode, Opcode::Shfl);
  EXPECT_EQ(find_by_prefix("cp.async.wait_group", length)->opcode, Opcode::CpAsyncWaitGroup);
  EXPECT_EQ(find_by_prefix("cp.async.ca", length)->opcode, Opcode::CpAsync);
  EXPECT_EQ(find_by_prefix("barrier.cta.sync.aligned", length)->opcode, Opcode::BarSync);
  EXPECT_EQ(find_by_prefix("bogus.add", length), nullptr);
}

TEST(Tables, EveryModifierWordSetsAndPrintsItself) {
  for (const ModifierWord& word : modifier_words()) {
    if (word.group == ModifierGroup::Hint) continue;
    Modifiers modifiers;
    EXPECT_FALSE(modifier_given(modifiers, word.group)) << word.word;
    set_modifier(modifiers, word.group, word.value);
    EXPECT_TRUE(modifier_given(modifiers, word.group)) << word.word;
    EXPECT_EQ(modifier_value(modifiers, word.group), word.value) << word.word;
    EXPECT_FALSE(modifier_word(modifiers, word.group).empty()) << word.word;
    EXPECT_FALSE(describe(word.group).empty());
  }
}

TEST(Tables, SpecialRegistersHaveNamesThatFindThem) {
  for (int i = 1; i <= static_cast<int>(SpecialRegister::CurrentGraphExec); ++i) {
    const auto special = static_cast<SpecialRegister>(i);
    const std::string_view name = name_of(special);
    if (special == SpecialRegister::Envreg) continue;
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view component = dot < name.size() ? name.substr(dot + 1) : std::string_view();
    EXPECT_EQ(special_register_from_name(name.substr(0, dot), component), special) << name;
  }
  EXPECT_EQ(special_register_from_name("%envreg31", ""), SpecialRegister::Envreg);
  EXPECT_EQ(special_register_from_name("%envreg32", ""), SpecialRegister::None);
  EXPECT_EQ(special_register_from_name("%tid", ""), SpecialRegister::None);
  EXPECT_EQ(special_register_from_name("%laneid", "x"), SpecialRegister::None);
}

TEST(Tables, RegisterWidthsFollowTheRelaxedRulesOnlyWhereAsked) {
  EXPECT_TRUE(register_fits(Type::B32, Type::F32, false));
  EXPECT_TRUE(register_fits(Type::U32, Type::S32, false));
  EXPECT_TRUE(register_fits(Type::F32, Type::B32, false));
  EXPECT_FALSE(register_fits(Type::F32, Type::U32, false));
  EXPECT_FALSE(register_fits(Type::B64, Type::B32, false));
  EXPECT_TRUE(register_fits(Type::B64, Type::B32, true));
  EXPECT_TRUE(register_fits(Type::B32, Type::F16, true));
  EXPECT_FALSE(register_fits(Type::F32, Type::F16, true));
  EXPECT_FALSE(register_fits(Type::B16, Type::B32, true));
  EXPECT_FALSE(register_fits(Type::Pred, Type::B8, true));
  EXPECT_FALSE(register_fits(Type::F16, Type::Bf16, false));
}

}  // namespace
}  // namespace firebreak::ptx
