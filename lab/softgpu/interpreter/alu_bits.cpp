// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Opcode;
using ptx::PermuteMode;
using ptx::ShiftMode;
using ptx::Type;

template <class T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
T bit_not(T a) {
  return static_cast<T>(~a);
}
template <auto combine>
const MicroOp* combine_predicates(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  const auto read = [&](std::size_t index) {
    return warp.predicate(op->operands[index]) ^ (((op->negated >> index) & 1U) != 0 ? all_lanes : 0);
  };
  const LaneMask result = combine(read(1), read(2));
  LaneMask& destination = warp.predicate(op->operands[0]);
  destination = (destination & ~mask) | (result & mask);
  return op + 1;
}
LaneMask not_predicate(LaneMask a, LaneMask) { return ~a; }
template <class T>
T logical_not(T a) {
  return a == 0 ? 1 : 0;
}

/// The truth table in the immediate: bit (a << 2 | b << 1 | c) is the result.
std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (std::uint32_t row = 0; row < 8; ++row) {
    const std::uint32_t wanted = 0U - ((table >> row) & 1U);
    result |= wanted & ((row & 4U) != 0 ? a : ~a) & ((row & 2U) != 0 ? b : ~b) & ((row & 1U) != 0 ? c : ~c);
  }
  return result;
}

// Amounts beyond the width clamp to the width.
template <class T>
T shift_left(T a, std::uint32_t amount) {
  return amount >= sizeof(T) * 8 ? T{0} : static_cast<T>(static_cast<std::uint64_t>(a) << amount);
}
template <class T>
T shift_right(T a, std::uint32_t amount) {
  constexpr std::uint32_t last = sizeof(T) * 8 - 1;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min(amount, last));
  return amount > last ? T{0} : static_cast<T>(a >> amount);
}

template <bool left, bool wrap>
std::uint32_t funnel(std::uint32_t low, std::uint32_t high, std::uint32_t amount) {
  const std::uint64_t both = (std::uint64_t{high} << 32) | low;
  const std::uint32_t places = wrap ? amount & 31U : std::min(amount, 32U);
  return static_cast<std::uint32_t>(left ? (both << places) >> 32 : both >> places);
}

template <class T>
std::uint32_t population(T a) {
  return static_cast<std::uint32_t>(std::popcount(a));
}
template <class T>
std::uint32_t leading_zeros(T a) {
  return static_cast<std::uint32_t>(std::countl_zero(a));
}
template <class T>
T reverse(T a) {
  T result = 0;
  for (std::size_t bit = 0; bit < sizeof(T) * 8; ++bit) {
    result = static_cast<T>((result << 1) | ((a >> bit) & 1U));
  }
  return result;
}

/// The most significant bit that is not a sign bit; all ones when there is none.
template <class T, bool as_amount>
std::uint32_t find_leading(T a) {
  auto bits = static_cast<std::make_unsigned_t<T>>(a);
  if (std::is_signed_v<T> && a < 0) bits = static_cast<std::make_unsigned_t<T>>(~bits);
  if (bits == 0) return 0xFFFF'FFFF;
  const int zeros = std::countl_zero(bits);
  return static_cast<std::uint32_t>(as_amount ? zeros : static_cast<int>(sizeof(T) * 8) - 1 - zeros);
}

/// The offset-th set bit of mask, counted from base upward (offset > 0) or downward (offset < 0).
std::uint32_t find_nth_set(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
  base &= 31U;
  if (offset == 0) return ((mask >> base) & 1U) != 0 ? base : 0xFFFF'FFFF;
  const int step = offset > 0 ? 1 : -1;
  std::int64_t left = offset > 0 ? std::int64_t{offset} : -std::int64_t{offset};
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
    if (((mask >> bit) & 1U) != 0 && --left == 0) return static_cast<std::uint32_t>(bit);
  }
  return 0xFFFF'FFFF;
}

template <class T>
T extract_field(T a, std::uint32_t position, std::uint32_t length) {
  using Bits = std::make_unsigned_t<T>;
  constexpr std::uint32_t last = sizeof(T) * 8 - 1;
  position &= 0xFFU;
  length &= 0xFFU;
  if (length == 0) return 0;
  const auto bits = static_cast<Bits>(a);
  const std::uint32_t sign_at = std::min(position + length - 1, last);
  const bool fill = std::is_signed_v<T> && ((bits >> sign_at) & 1U) != 0;
  const Bits kept =
      length > last ? std::numeric_limits<Bits>::max() : static_cast<Bits>((Bits{1} << length) - 1U);
  const Bits shifted = position > last ? Bits{0} : static_cast<Bits>(bits >> position);
  const std::uint32_t present = position > last ? 0 : last + 1 - position;
  const Bits have =
      present > last ? std::numeric_limits<Bits>::max() : static_cast<Bits>((Bits{1} << present) - 1U);
  const Bits field = shifted & kept;
  return static_cast<T>(fill ? static_cast<Bits>(field | ~(kept & have)) : field);
}

template <class T>
T insert_field(T field, T into, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t width = sizeof(T) * 8;
  position &= 0xFFU;
  length &= 0xFFU;
  if (position >= width || length == 0) return into;
  const T ones = length >= width ? std::numeric_limits<T>::max() : static_cast<T>((T{1} << length) - 1U);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((into & ~mask) | ((field << position) & mask));
}

/// szext: bit a's low `n` bits, sign or zero extended.
template <class T, bool wrap>
T extend(T a, std::uint32_t length) {
  if (wrap) length &= 31U;
  if (length >= 32) return a;
  if (length == 0) return 0;
  return extract_field<T>(a, 0, length);
}
template <bool wrap>
std::uint32_t bit_mask(std::uint32_t position, std::uint32_t length) {
  if (wrap) {
    position &= 31U;
    length &= 31U;
  }
  return insert_field<std::uint32_t>(~0U, 0U, std::min(position, 32U), std::min(length, 32U));
}

template <PermuteMode mode>
std::uint32_t selector_of(std::uint32_t control) {
  const std::uint32_t c = control & 3U;
  const auto four = [](std::uint32_t b3, std::uint32_t b2, std::uint32_t b1, std::uint32_t b0) {
    return (b3 << 12) | (b2 << 8) | (b1 << 4) | b0;
  };
  switch (mode) {
    case PermuteMode::F4e:
      return four(c + 3, c + 2, c + 1, c);
    case PermuteMode::B4e:
      return four((c + 5) & 7U, (c + 6) & 7U, (c + 7) & 7U, c);
    case PermuteMode::Rc8:
      return four(c, c, c, c);
    case PermuteMode::Ecl:
      return four(3, std::max(c, 2U), std::max(c, 1U), c);
    case PermuteMode::Ecr:
      return four(c, std::min(c, 2U), std::min(c, 1U), 0);
    case PermuteMode::Rc16:
      return (c & 1U) != 0 ? 0x3232 : 0x1010;
    case PermuteMode::None:
      break;
  }
  return control;
}
template <PermuteMode mode>
std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t control) {
  const std::uint64_t bytes = (std::uint64_t{b} << 32) | a;
  const std::uint32_t selector = selector_of<mode>(control);
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t pick = (selector >> (4 * i)) & 0xFU;
    auto byte = static_cast<std::uint32_t>(bytes >> (8 * (pick & 7U))) & 0xFFU;
    if (mode == PermuteMode::None && (pick & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xFFU : 0U;
    result |= byte << (8 * i);
  }
  return result;
}

Selected select_permute(const ptx::Instruction& i) {
  switch (i.modifiers.permute_mode) {
    case PermuteMode::None:
      return lane_operation<&permute<PermuteMode::None>>();
    case PermuteMode::F4e:
      return lane_operation<&permute<PermuteMode::F4e>>();
    case PermuteMode::B4e:
      return lane_operation<&permute<PermuteMode::B4e>>();
    case PermuteMode::Rc8:
      return lane_operation<&permute<PermuteMode::Rc8>>();
    case PermuteMode::Ecl:
      return lane_operation<&permute<PermuteMode::Ecl>>();
    case PermuteMode::Ecr:
      return lane_operation<&permute<PermuteMode::Ecr>>();
    case PermuteMode::Rc16:
      return lane_operation<&permute<PermuteMode::Rc16>>();
  }
  return {};
}

Selected select_predicate_logic(Opcode opcode) {
  switch (opcode) {
    case Opcode::And:
      return {&combine_predicates<&bit_and<LaneMask>>, {1, 1, 1}, 3};
    case Opcode::Or:
      return {&combine_predicates<&bit_or<LaneMask>>, {1, 1, 1}, 3};
    case Opcode::Xor:
      return {&combine_predicates<&bit_xor<LaneMask>>, {1, 1, 1}, 3};
    case Opcode::Not:
      return {&combine_predicates<&not_predicate>, {1, 1}, 2};
    default:
      return {};
  }
}

Selected select_logic(const ptx::Instruction& i) {
  if (i.type == Type::Pred) return select_predicate_logic(i.opcode);
  return with_bits(i.type, [&]<class T>(T) -> Selected {
    switch (i.opcode) {
      case Opcode::And:
        return lane_operation<&bit_and<T>>();
      case Opcode::Or:
        return lane_operation<&bit_or<T>>();
      case Opcode::Xor:
        return lane_operation<&bit_xor<T>>();
      case Opcode::Not:
        return lane_operation<&bit_not<T>>();
      case Opcode::Cnot:
        return lane_operation<&logical_not<T>>();
      default:
        return {};
    }
  });
}

Selected select_funnel(const ptx::Instruction& i) {
  const bool wrap = i.modifiers.shift_mode == ShiftMode::Wrap;
  if (i.modifiers.shift_direction == ptx::ShiftDirection::Left) {
    return wrap ? lane_operation<&funnel<true, true>>() : lane_operation<&funnel<true, false>>();
  }
  return wrap ? lane_operation<&funnel<false, true>>() : lane_operation<&funnel<false, false>>();
}

Selected select_shift(const ptx::Instruction& i) {
  if (i.opcode == Opcode::Shl) {
    return with_bits(i.type, []<class T>(T) { return lane_operation<&shift_left<T>>(); });
  }
  return with_integer(i.type, []<class T>(T) { return lane_operation<&shift_right<T>>(); });
}

Selected select_find(const ptx::Instruction& i) {
  return with_integer(i.type, [&]<class T>(T) {
    return i.modifiers.shift_amount ? lane_operation<&find_leading<T, true>>()
                                    : lane_operation<&find_leading<T, false>>();
  });
}

Selected select_extend(const ptx::Instruction& i) {
  const bool wrap = i.modifiers.shift_mode == ShiftMode::Wrap;
  if (i.type == Type::S32) {
    return wrap ? lane_operation<&extend<std::int32_t, true>>()
                : lane_operation<&extend<std::int32_t, false>>();
  }
  return wrap ? lane_operation<&extend<std::uint32_t, true>>()
              : lane_operation<&extend<std::uint32_t, false>>();
}

Selected select_count(const ptx::Instruction& i) {
  return with_bits(i.type, [&]<class T>(T) -> Selected {
    if (i.opcode == Opcode::Popc) return lane_operation<&population<T>>();
    if (i.opcode == Opcode::Clz) return lane_operation<&leading_zeros<T>>();
    return lane_operation<&reverse<T>>();
  });
}

}  // namespace

Selected select_predicate_combination(ptx::BoolOp how) {
  switch (how) {
    case ptx::BoolOp::And:
      return select_predicate_logic(Opcode::And);
    case ptx::BoolOp::Or:
      return select_predicate_logic(Opcode::Or);
    case ptx::BoolOp::Xor:
      return select_predicate_logic(Opcode::Xor);
    default:
      return {};
  }
}

Selected select_bits(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
    case Opcode::Cnot:
      return select_logic(i);
    case Opcode::Lop3:
      return i.modifiers.bool_op == ptx::BoolOp::None ? lane_operation<&lop3>() : Selected{};
    case Opcode::Shl:
    case Opcode::Shr:
      return select_shift(i);
    case Opcode::Shf:
      return select_funnel(i);
    case Opcode::Popc:
    case Opcode::Clz:
    case Opcode::Brev:
      return select_count(i);
    case Opcode::Bfind:
      return select_find(i);
    case Opcode::Fns:
      return lane_operation<&find_nth_set>();
    case Opcode::Bfe:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&extract_field<T>>(); });
    case Opcode::Bfi:
      return with_bits(i.type, []<class T>(T) { return lane_operation<&insert_field<T>>(); });
    case Opcode::Szext:
      return select_extend(i);
    case Opcode::Bmsk:
      return i.modifiers.shift_mode == ShiftMode::Wrap ? lane_operation<&bit_mask<true>>()
                                                       : lane_operation<&bit_mask<false>>();
    case Opcode::Prmt:
      return select_permute(i);
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
