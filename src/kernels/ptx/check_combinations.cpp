// SPDX-License-Identifier: Apache-2.0
// Checks what the opcode table cannot say: modifiers, types and operand counts that exclude or need each
// other.
#include <algorithm>
#include <array>

#include "kernels/ptx/modifier_table.h"
#include "kernels/ptx/operand_forms.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

using Problem = std::optional<std::string>;

Problem unless(bool fine, const char* message) { return fine ? Problem() : Problem(message); }

bool is_float(Type type) { return kind_of(type) == TypeKind::Float; }
bool is_integer(Type type) {
  return kind_of(type) == TypeKind::Unsigned || kind_of(type) == TypeKind::Signed;
}
bool given(const Instruction& instruction, ModifierGroup group) {
  return modifier_given(instruction.modifiers, group);
}

Problem check_rounded(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  if (!is_float(instruction.type)) return {};
  const int kinds = (modifiers.rounding != Rounding::None) + modifiers.approximate + modifiers.full;
  if (kinds != 1)
    return instruction.opcode == Opcode::Div ? "needs one of a rounding, .approx and .full"
                                             : "needs either a rounding or .approx";
  return unless(instruction.type != Type::F64 || instruction.opcode != Opcode::Div ||
                    modifiers.rounding != Rounding::None,
                "needs a rounding for .f64");
}

Problem check_mad(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  if (is_float(instruction.type))
    return unless(modifiers.rounding != Rounding::None, "needs a rounding, as .rn");
  if (modifiers.half == Half::Wide && size_bytes(instruction.type) > 4) return "has no .wide of 64 bits";
  if (modifiers.carry_out && (modifiers.half == Half::Wide || size_bytes(instruction.type) < 4))
    return "with .cc takes .lo or .hi of 32 or 64 bits";
  return unless(!modifiers.saturate || (instruction.type == Type::S32 && modifiers.half == Half::Hi),
                "has .sat only for .hi.s32");
}

Problem check_mul(const Instruction& instruction) {
  const bool too_wide = instruction.modifiers.half == Half::Wide && size_bytes(instruction.type) > 4;
  return unless(!too_wide, "has no .wide of 64 bits");
}

Problem check_narrow_half(const Instruction& instruction) {
  return unless(instruction.modifiers.half != Half::Wide, "has no .wide");
}

Problem check_add(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  if (!is_integer(instruction.type)) return {};
  if (modifiers.carry_out && size_bytes(instruction.type) < 4) return "with .cc takes 32 or 64 bits";
  return unless(!modifiers.saturate || instruction.type == Type::S32, "has .sat for integers only as .s32");
}

bool is_wider_or_same(Type destination, Type source) {
  const auto rank = [](Type type) { return type == Type::Tf32 ? 3U : size_bytes(type); };
  const bool same_half = (destination == Type::F16 || destination == Type::Bf16) && source == destination;
  return rank(destination) > rank(source) || same_half ||
         (destination == source && destination != Type::Tf32);
}

bool is_packed(Type type) {
  return type == Type::F16x2 || type == Type::Bf16x2 || type == Type::E4m3x2 || type == Type::E5m2x2;
}

Problem check_cvt(const Instruction& instruction) {
  const Type to = instruction.type;
  const Type from = instruction.source_type;
  const bool rounds = given(instruction, ModifierGroup::Rounding);
  const bool rounds_to_integer = given(instruction, ModifierGroup::IntegerRounding);
  const bool merges = (is_packed(to) && from == Type::F32);
  if ((instruction.operands.size() == 3) != merges) return merges ? "takes two sources" : "takes one source";
  if (is_float(to) && is_float(from)) {
    if (rounds_to_integer) return unless(to == from, "can round to an integer only within one type");
    const bool must_round = is_packed(to) || is_packed(from) || !is_wider_or_same(to, from);
    return unless(rounds == must_round,
                  must_round ? "needs a rounding, as .rn" : "takes no rounding, for it is exact");
  }
  if (is_float(from)) return unless(rounds_to_integer, "needs a rounding to an integer, as .rzi");
  if (is_float(to)) return unless(rounds, "needs a rounding, as .rn");
  return unless(!rounds && !rounds_to_integer, "takes no rounding between integers");
}

bool is_unsigned_compare(Compare compare) {
  return compare == Compare::Lo || compare == Compare::Ls || compare == Compare::Hi || compare == Compare::Hs;
}
bool is_float_compare(Compare compare) { return compare >= Compare::Equ; }

Problem check_compare(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  const Type type = instruction.opcode == Opcode::Set ? instruction.source_type : instruction.type;
  const Compare compare = modifiers.compare;
  if (kind_of(type) == TypeKind::Bits && compare != Compare::Eq && compare != Compare::Ne)
    return "compares bits only with .eq and .ne";
  if (is_float_compare(compare) && !is_float(type)) return "has this comparison only for floating point";
  if (is_unsigned_compare(compare) && kind_of(type) != TypeKind::Unsigned)
    return "has this comparison only for unsigned integers";
  if (modifiers.bool_op == BoolOp::Popc) return "takes .and, .or or .xor";
  return unless((instruction.operands.size() == 4) == (modifiers.bool_op != BoolOp::None),
                "takes a third source with .and, .or, .xor, and only then");
}

Problem check_lop3(const Instruction& instruction) {
  const bool combines = instruction.modifiers.bool_op != BoolOp::None;
  return unless((instruction.operands.size() == 6) == combines,
                "takes a predicate with .and, .or, and only then");
}

Problem check_bar_red(const Instruction& instruction) {
  const bool counts = instruction.modifiers.bool_op == BoolOp::Popc;
  if (instruction.modifiers.bool_op == BoolOp::Xor) return "takes .and, .or or .popc";
  return unless(counts == (instruction.type == Type::U32), "takes .popc with .u32, .and and .or with .pred");
}

Problem check_vote(const Instruction& instruction) {
  const bool ballot = instruction.modifiers.vote_mode == VoteMode::Ballot;
  return unless(ballot == (instruction.type == Type::B32), "takes .ballot with .b32, the others with .pred");
}

template <class... Types>
bool is_one_of(Type type, Types... types) {
  return ((type == types) || ...);
}

bool atomic_type_fits(AtomicOp op, Type type) {
  switch (op) {
    case AtomicOp::Cas:
      return is_one_of(type, Type::B16, Type::B32, Type::B64, Type::B128);
    case AtomicOp::Exch:
      return is_one_of(type, Type::B32, Type::B64, Type::B128, Type::U32, Type::U64, Type::S32);
    case AtomicOp::And:
    case AtomicOp::Or:
    case AtomicOp::Xor:
      return is_one_of(type, Type::B32, Type::B64);
    case AtomicOp::Inc:
    case AtomicOp::Dec:
      return type == Type::U32;
    case AtomicOp::Min:
    case AtomicOp::Max:
      return is_one_of(type, Type::U32, Type::U64, Type::S32, Type::S64, Type::F16, Type::F16x2, Type::Bf16,
                       Type::Bf16x2);
    case AtomicOp::Add:
      return (is_integer(type) && size_bytes(type) >= 4) || is_float(type);
    case AtomicOp::None:
      return false;
  }
  return false;
}

bool is_ordered(MemoryOrder order) {
  return order == MemoryOrder::Relaxed || order == MemoryOrder::Acquire || order == MemoryOrder::Release ||
         order == MemoryOrder::AcqRel;
}

Problem check_atomic(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  const bool swaps = modifiers.atomic_op == AtomicOp::Cas;
  if (!atomic_type_fits(modifiers.atomic_op, instruction.type))
    return "does not have this operation for this type";
  if (modifiers.order != MemoryOrder::None && !is_ordered(modifiers.order))
    return "does not have this memory order";
  const std::size_t hint = modifiers.cache_hint ? 1 : 0;
  if (instruction.opcode == Opcode::Red) {
    if (swaps || modifiers.atomic_op == AtomicOp::Exch) return "does not have this operation";
    return unless(instruction.operands.size() == 2 + hint, "takes an address and one value");
  }
  return unless(instruction.operands.size() == (swaps ? 4U : 3U) + hint,
                swaps ? "with .cas takes two values" : "takes one value");
}

Problem check_redux(const Instruction& instruction) {
  const AtomicOp op = instruction.modifiers.atomic_op;
  const bool logic = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  const bool arithmetic = op == AtomicOp::Add || op == AtomicOp::Min || op == AtomicOp::Max;
  return unless(instruction.type == Type::B32 ? logic : arithmetic,
                "does not have this operation for this type");
}

Problem check_scope(const Modifiers& modifiers) {
  const bool scoped = modifiers.order == MemoryOrder::Relaxed || modifiers.order == MemoryOrder::Acquire ||
                      modifiers.order == MemoryOrder::Release || modifiers.order == MemoryOrder::Mmio;
  return unless(scoped == (modifiers.scope != Scope::None),
                "takes a scope with .relaxed, .acquire, .release or .mmio, and only then");
}

Problem check_load(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  const bool wrong_order = modifiers.order == MemoryOrder::Release ||
                           modifiers.order == MemoryOrder::AcqRel || modifiers.order == MemoryOrder::Sc;
  if (wrong_order) return "does not have this memory order";
  if (modifiers.cache == CacheOperator::Wb || modifiers.cache == CacheOperator::Wt)
    return "does not have this cache operator";
  if (modifiers.non_coherent && modifiers.space != StateSpace::Global) return "has .nc only for .global";
  if (modifiers.non_coherent && modifiers.order != MemoryOrder::None && modifiers.order != MemoryOrder::Weak)
    return "has no memory order beside .nc";
  if ((instruction.operands.size() == 3) != modifiers.cache_hint)
    return "takes a policy with .L2::cache_hint, and only then";
  return check_scope(modifiers);
}

Problem check_store(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  const bool wrong_order = modifiers.order == MemoryOrder::Acquire ||
                           modifiers.order == MemoryOrder::AcqRel || modifiers.order == MemoryOrder::Sc;
  if (wrong_order) return "does not have this memory order";
  if (modifiers.cache == CacheOperator::Ca || modifiers.cache == CacheOperator::Lu ||
      modifiers.cache == CacheOperator::Cv)
    return "does not have this cache operator";
  if ((instruction.operands.size() == 3) != modifiers.cache_hint)
    return "takes a policy with .L2::cache_hint, and only then";
  return check_scope(modifiers);
}

Problem check_membar(const Instruction& instruction) {
  return unless(instruction.modifiers.scope != Scope::Cluster, "has .cta, .gl and .sys");
}

Problem check_fence(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  if (modifiers.order == MemoryOrder::Weak || modifiers.order == MemoryOrder::Relaxed ||
      modifiers.order == MemoryOrder::Volatile || modifiers.order == MemoryOrder::Mmio)
    return "does not have this memory order";
  // A scope alone means .acq_rel; neither is a proxy fence.
  return unless(modifiers.order == MemoryOrder::None || modifiers.scope != Scope::None,
                "takes a scope with a memory order");
}

Problem check_cp_async(const Instruction& instruction) {
  const Modifiers& modifiers = instruction.modifiers;
  const std::uint64_t bytes = instruction.operands[2].bits;
  if (modifiers.cache != CacheOperator::Ca && modifiers.cache != CacheOperator::Cg) return "has .ca and .cg";
  if (modifiers.cache == CacheOperator::Cg) return unless(bytes == 16, "with .cg copies 16 bytes");
  return unless(bytes == 4 || bytes == 8 || bytes == 16, "copies 4, 8 or 16 bytes");
}

struct Rule {
  Opcode opcode;
  Problem (*check)(const Instruction&);
};
constexpr std::array rules{
    Rule{Opcode::Add, check_add},          Rule{Opcode::Atom, check_atomic},
    Rule{Opcode::BarRed, check_bar_red},   Rule{Opcode::CpAsync, check_cp_async},
    Rule{Opcode::Cvt, check_cvt},          Rule{Opcode::Div, check_rounded},
    Rule{Opcode::Dp2a, check_narrow_half}, Rule{Opcode::Fence, check_fence},
    Rule{Opcode::Ld, check_load},          Rule{Opcode::Lop3, check_lop3},
    Rule{Opcode::Mad, check_mad},          Rule{Opcode::Mad24, check_narrow_half},
    Rule{Opcode::Madc, check_narrow_half}, Rule{Opcode::Membar, check_membar},
    Rule{Opcode::Mul, check_mul},          Rule{Opcode::Mul24, check_narrow_half},
    Rule{Opcode::Rcp, check_rounded},      Rule{Opcode::Red, check_atomic},
    Rule{Opcode::ReduxSync, check_redux},  Rule{Opcode::Set, check_compare},
    Rule{Opcode::Setp, check_compare},     Rule{Opcode::Sqrt, check_rounded},
    Rule{Opcode::St, check_store},         Rule{Opcode::Sub, check_add},
    Rule{Opcode::Vote, check_vote},        Rule{Opcode::VoteSync, check_vote},
};

}  // namespace

Finding check_combinations(const Module& module) {
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions) {
      const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& candidate) {
        return candidate.opcode == instruction.opcode;
      });
      const Problem problem = rule == rules.end() ? Problem() : rule->check(instruction);
      if (problem) return complain(instruction.location, short_name(instruction) + " " + *problem);
    }
  return std::nullopt;
}

}  // namespace firebreak::ptx
