// SPDX-License-Identifier: Apache-2.0
/// The table of instructions as data: their names, the types and modifiers they take, and their operands.
/// Internal to src/kernels/ptx.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/ptx/modifier_table.h"
#include "kernels/ptx/opcode.h"

namespace firebreak::ptx {

/// A set of types, one bit each; the bit of Type::None says that the type may be left out.
using TypeSet = std::uint32_t;
constexpr TypeSet bit(Type type) { return 1U << static_cast<unsigned>(type); }
constexpr bool contains(TypeSet set, Type type) { return (set & bit(type)) != 0; }

/// One variant of an instruction: `mul` has one for integers and one for floating point.
struct InstructionVariant {
  Opcode opcode{};
  std::string_view name;           ///< with the words that belong to it: "shfl.sync"
  std::array<TypeSet, 4> types{};  ///< an empty set: no type stands there
  ModifierGroups allowed = 0;      ///< groups besides the required ones
  ModifierGroups required = 0;
  /// The operands, in the language that operand_forms.h explains.
  std::string_view operands;
  /// Effects on memory at its first and second [address]. None for calls: their callees do it.
  std::array<EffectKind, 2> effects{};
};

/// Returns all variants; those of one opcode stand together.
std::span<const InstructionVariant> instruction_variants();

/// The variants of an opcode, in the order of preference.
std::span<const InstructionVariant> variants_of(Opcode opcode);

/// The variant whose types match; null when there is none.
const InstructionVariant* find_variant(Opcode opcode, const std::array<Type, 4>& types);

/// The longest name that starts `text` ("shfl.sync.down.b32") and ends at a dot or the end; its length is in
/// `name_length`. Null when there is none. Aliases (barrier.sync for bar.sync) are found, too.
const InstructionVariant* find_by_prefix(std::string_view text, std::size_t& name_length);

}  // namespace firebreak::ptx
