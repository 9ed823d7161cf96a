// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/alu_carry.h"

namespace firebreak::softgpu {

namespace {

using ptx::Half;
using ptx::Opcode;

template <class T>
struct CarryResult {
  T value;
  bool carry;
};

template <class T>
CarryResult<T> add_with(T a, T b, bool carry) {
  const T partial = a + b;
  const T sum = partial + static_cast<T>(carry);
  return {sum, partial < a || sum < partial};
}

template <class T>
CarryResult<T> subtract_with(T a, T b, bool borrow) {
  const T partial = a - b;
  return {static_cast<T>(partial - static_cast<T>(borrow)), a < b || partial < static_cast<T>(borrow)};
}

template <class T>
struct AddCarry {
  static constexpr int sources = 2;
  static CarryResult<T> apply(T a, T b, T, bool carry) { return add_with(a, b, carry); }
};
template <class T>
struct SubtractBorrow {
  static constexpr int sources = 2;
  static CarryResult<T> apply(T a, T b, T, bool borrow) { return subtract_with(a, b, borrow); }
};
template <class T>
struct MultiplyAddLow {
  static constexpr int sources = 3;
  static CarryResult<T> apply(T a, T b, T c, bool carry) { return add_with<T>(a * b, c, carry); }
};
/// S: signed or unsigned, for the high half.
template <class T, class S>
struct MultiplyAddHigh {
  static constexpr int sources = 3;
  __extension__ typedef __int128 Wide;
  static CarryResult<T> apply(T a, T b, T c, bool carry) {
    if constexpr (std::is_signed_v<S>) {
      const Wide product = static_cast<Wide>(static_cast<S>(a)) * static_cast<S>(b);
      return add_with<T>(static_cast<T>(product >> (sizeof(T) * 8)), c, carry);
    } else {
      __extension__ typedef unsigned __int128 WideUnsigned;
      const WideUnsigned product = static_cast<WideUnsigned>(a) * b;
      return add_with<T>(static_cast<T>(product >> (sizeof(T) * 8)), c, carry);
    }
  }
};

template <class T, class Operation, bool reads_carry>
const MicroOp* execute_carry(Warp& warp, const MicroOp* op) {
  auto* const destination = warp.pointer<T>(op->operands[0]);
  const auto* const a = warp.pointer<const T>(op->operands[1]);
  const auto* const b = warp.pointer<const T>(op->operands[2]);
  const auto* const c = warp.pointer<const T>(op->operands[Operation::sources]);
  LaneMask& flag = warp.predicate(op->operands[carry_operand]);
  const LaneMask before = flag;
  const LaneMask mask = warp.lanes(*op);
  LaneMask after = 0;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const bool carry = reads_carry && ((before >> lane) & 1U) != 0;
    const auto result = Operation::apply(a[lane], b[lane], c[lane], carry);
    destination[lane] = result.value;
    if (result.carry) after |= LaneMask{1} << lane;
  }
  if (op->has(carry_out)) flag = (before & ~mask) | after;
  return op + 1;
}

template <class T, class Operation>
Selected carry_operation(bool reads_carry) {
  constexpr std::uint8_t width = sizeof(T) * 8;
  Selected selected;
  selected.execute = reads_carry ? &execute_carry<T, Operation, true> : &execute_carry<T, Operation, false>;
  selected.widths = {width, width, width, Operation::sources == 3 ? width : std::uint8_t{0}};
  selected.count = Operation::sources + 1;
  return selected;
}

template <class T, class S>
Selected select_multiply(Half half, bool reads_carry) {
  if (half == Half::Lo) return carry_operation<T, MultiplyAddLow<T>>(reads_carry);
  return carry_operation<T, MultiplyAddHigh<T, S>>(reads_carry);
}

template <class T, class S>
Selected select_width(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Add:
      return carry_operation<T, AddCarry<T>>(false);
    case Opcode::Addc:
      return carry_operation<T, AddCarry<T>>(true);
    case Opcode::Sub:
      return carry_operation<T, SubtractBorrow<T>>(false);
    case Opcode::Subc:
      return carry_operation<T, SubtractBorrow<T>>(true);
    case Opcode::Mad:
      return select_multiply<T, S>(i.modifiers.half, false);
    case Opcode::Madc:
      return select_multiply<T, S>(i.modifiers.half, true);
    default:
      return {};
  }
}

}  // namespace

Selected select_carry(const ptx::Instruction& i) {
  const bool reads = i.opcode == Opcode::Addc || i.opcode == Opcode::Subc || i.opcode == Opcode::Madc;
  if (!reads && !i.modifiers.carry_out) return {};
  switch (i.type) {
    case ptx::Type::U32:
    case ptx::Type::B32:
      return select_width<std::uint32_t, std::uint32_t>(i);
    case ptx::Type::S32:
      return select_width<std::uint32_t, std::int32_t>(i);
    case ptx::Type::U64:
    case ptx::Type::B64:
      return select_width<std::uint64_t, std::uint64_t>(i);
    case ptx::Type::S64:
      return select_width<std::uint64_t, std::int64_t>(i);
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
