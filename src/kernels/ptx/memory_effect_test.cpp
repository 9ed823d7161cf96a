// SPDX-License-Identifier: Apache-2.0
// The table's column of memory effects, and instructions that the parser does not know.
#include "kernels/ptx/memory_effect.h"

#include <gmock/gmock.h>

#include "kernels/ptx/dump.h"
#include "kernels/ptx/opcode_table.h"
#include "kernels/ptx/parse.h"

namespace firebreak::ptx {
namespace {

constexpr std::string_view prelude =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".entry k (.param .u64 p) { .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n";

Result<Module> parsed(const std::string& body, UnknownInstructions unknown) {
  return parse(std::string(prelude) + body + "\n}", "text", unknown);
}

MemoryEffect effect_of(const std::string& text, std::size_t which = 0) {
  const Result<Module> module = parsed(text, UnknownInstructions::Refused);
  EXPECT_TRUE(module) << module.error().message;
  return module ? memory_effects(module->functions.at(0).instructions.at(0))[which] : MemoryEffect{};
}

TEST(MemoryEffect, TheAddressIsFoundWhereverItStands) {
  const MemoryEffect load = effect_of("ld.global.f32 %f1, [%rd1+4];");
  EXPECT_EQ(load.kind, EffectKind::Read);
  EXPECT_EQ(load.operand, 1U);
  EXPECT_EQ(load.space, StateSpace::Global);
  const MemoryEffect store = effect_of("st.f32 [%rd1], %f1;");
  EXPECT_EQ(store.kind, EffectKind::Write);
  EXPECT_EQ(store.operand, 0U);
  EXPECT_EQ(store.space, StateSpace::None);
  EXPECT_EQ(effect_of("atom.global.add.u32 %r1, [%rd1], %r2;").kind, EffectKind::Atomic);
  EXPECT_EQ(effect_of("red.global.add.u32 [%rd1], %r2;").operand, 0U);
  EXPECT_EQ(effect_of("add.s32 %r1, %r2, %r3;").kind, EffectKind::None);
}

TEST(MemoryEffect, AnAsynchronousCopyReadsOnePlaceAndWritesAnother) {
  const std::string copy = "cp.async.ca.shared.global [%r1], [%rd1], 16;";
  EXPECT_EQ(effect_of(copy).kind, EffectKind::Write);
  EXPECT_EQ(effect_of(copy).space, StateSpace::Shared);
  EXPECT_EQ(effect_of(copy, 1).kind, EffectKind::Read);
  EXPECT_EQ(effect_of(copy, 1).space, StateSpace::Global);
  EXPECT_EQ(effect_of(copy, 1).operand, 1U);
}

// A row with an address and no effect would be a store that the analysis does not see.
TEST(MemoryEffect, EveryRowWithAnAddressHasAnEffectOrOnlyPrefetches) {
  for (const InstructionVariant& variant : instruction_variants()) {
    const bool has_address = variant.operands.find('m') != std::string_view::npos;
    const bool prefetches = variant.opcode == Opcode::Prefetch || variant.opcode == Opcode::Prefetchu;
    EXPECT_EQ(variant.effects[0] != EffectKind::None, has_address && !prefetches) << variant.name;
    EXPECT_EQ(variant.effects[1] != EffectKind::None, variant.opcode == Opcode::CpAsync) << variant.name;
  }
}

TEST(OpaqueInstruction, OneUnknownOpcodeFailsOnlyWhoWantsToRunIt) {
  const std::string text = "@%p1 frobnicate.rn.f32 %f1, {%f2, %f3}, 4;\nadd.f32 %f1, %f1, %f2;";
  const Result<Module> refused = parsed(text, UnknownInstructions::Refused);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "text:5:6: unknown instruction 'frobnicate.rn.f32'");
  const Result<Module> kept = parsed(text, UnknownInstructions::Kept);
  ASSERT_TRUE(kept) << kept.error().message;
  const Function& kernel = kept->functions.at(0);
  ASSERT_EQ(kernel.instructions.size(), 2U);
  EXPECT_EQ(kernel.instructions[0].opcode, Opcode::Opaque);
  EXPECT_EQ(kernel.instructions[0].operands.size(), 3U);
  EXPECT_FALSE(kernel.opaque_instructions.at(0).has_address);
  EXPECT_FALSE(kernel.opaque_instructions.at(0).may_jump);
  EXPECT_EQ(dump(*kept, kernel, kernel.instructions[0]), "@%p1#0 frobnicate.rn.f32 %f1#1, %f2#2, %f3#3");
}

TEST(OpaqueInstruction, ItSaysWhatItMayTouch) {
  const auto opaque = [](const std::string& text) {
    const Result<Module> module = parsed(text, UnknownInstructions::Kept);
    EXPECT_TRUE(module) << module.error().message;
    return module ? module->functions.at(0).opaque_instructions.at(0) : OpaqueInstruction{};
  };
  EXPECT_TRUE(opaque("multimem.ld_reduce.global.add.f32 %f1, [%rd1];").has_address);
  EXPECT_FALSE(opaque("multimem.ld_reduce.global.add.f32 %f1, [%rd1];").only_shared);
  EXPECT_TRUE(opaque("frobnicate.shared::cta.b32 %r1, [%r2];").only_shared);
  EXPECT_FALSE(opaque("cp.frob.shared::cluster.global [%r2], [%rd1];").only_shared);
  EXPECT_TRUE(opaque("leap elsewhere;").may_jump);
  EXPECT_FALSE(opaque("leap %r1;").may_jump);
}

TEST(OpaqueInstruction, KnownNamesWithUnknownModifiersAreKeptToo) {
  const Result<Module> module = parsed("add.frob.f32 %f1, %f2, %f3;", UnknownInstructions::Kept);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->functions.at(0).opaque_instructions.at(0).text, "add.frob.f32");
}

}  // namespace
}  // namespace firebreak::ptx
