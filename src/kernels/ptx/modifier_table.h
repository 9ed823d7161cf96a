// SPDX-License-Identifier: Apache-2.0
/// Words like .rn, .ftz and .gt as data: which field of Modifiers each one sets. Internal to src/kernels/ptx.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/ptx/opcode.h"

namespace firebreak::ptx {

/// One field of Modifiers, or words that are accepted and mean nothing to us (Hint). The order is the order
/// in which the printer writes them.
enum class ModifierGroup : std::uint8_t {
  Aligned,
  ShuffleMode,
  VoteMode,
  TestKind,
  ShiftDirection,
  ShiftMode,
  Compare,
  BoolOp,
  Half,
  Carry,
  ExpectTx,
  NoComplete,
  Parity,
  ShiftAmount,
  Order,
  Scope,
  To,
  Space,
  SourceSpace,
  NonCoherent,
  Cache,
  CacheHint,
  AtomicOp,
  MatrixShape,
  MatrixCount,
  Transposed,
  LayoutA,
  LayoutB,
  Rounding,
  IntegerRounding,  ///< the same field as Rounding: .rni, .rzi, .rmi, .rpi
  Approximate,
  Full,
  Uniform,
  Ftz,
  Nan,
  XorsignAbs,
  Saturate,
  SaturateFinite,
  Relu,
  PermuteMode,
  Accumulate,
  Vector,
  Hint,
};
inline constexpr std::size_t modifier_group_count = static_cast<std::size_t>(ModifierGroup::Hint) + 1;

/// A set of groups, one bit each.
using ModifierGroups = std::uint64_t;
constexpr ModifierGroups bit(ModifierGroup group) { return 1ULL << static_cast<unsigned>(group); }

struct ModifierWord {
  std::string_view word;
  ModifierGroup group;
  std::uint8_t value;
};

/// Returns every word; a word stands once for each group it can belong to.
std::span<const ModifierWord> modifier_words();

/// The value of a group's field, 0 (vector arity: 1) where it was not given.
std::uint8_t modifier_value(const Modifiers& modifiers, ModifierGroup group);
bool modifier_given(const Modifiers& modifiers, ModifierGroup group);
void set_modifier(Modifiers& modifiers, ModifierGroup group, std::uint8_t value);

/// The word of a given modifier, without the dot; empty if it is not given.
std::string_view modifier_word(const Modifiers& modifiers, ModifierGroup group);

/// Names a group in messages: "a rounding modifier".
std::string_view describe(ModifierGroup group);

}  // namespace firebreak::ptx
