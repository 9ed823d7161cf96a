// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Half;
using ptx::Opcode;
using ptx::Type;

/// An unsigned type at least as wide as unsigned int, so that nothing is promoted to a signed one.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
template <class T>
constexpr Wrapping<T> wrap(T value) {
  return static_cast<Wrapping<T>>(value);
}

template <std::size_t size, bool is_signed>
struct Doubled;
template <>
struct Doubled<2, false> {
  using Type = std::uint32_t;
};
template <>
struct Doubled<2, true> {
  using Type = std::int32_t;
};
template <>
struct Doubled<4, false> {
  using Type = std::uint64_t;
};
template <>
struct Doubled<4, true> {
  using Type = std::int64_t;
};
__extension__ typedef unsigned __int128 Unsigned128;
__extension__ typedef __int128 Signed128;
template <>
struct Doubled<8, false> {
  using Type = Unsigned128;
};
template <>
struct Doubled<8, true> {
  using Type = Signed128;
};
template <class T>
using Wide = typename Doubled<sizeof(T), std::is_signed_v<T>>::Type;

template <class T>
T add(T a, T b) {
  return static_cast<T>(wrap(a) + wrap(b));
}
template <class T>
T sub(T a, T b) {
  return static_cast<T>(wrap(a) - wrap(b));
}
template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(wrap(a) * wrap(b));
}
template <class T>
T mul_hi(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (sizeof(T) * 8));
}
template <class T>
Wide<T> mul_wide(T a, T b) {
  return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * b);
}
template <class T>
T mad_lo(T a, T b, T c) {
  return static_cast<T>(wrap(a) * wrap(b) + wrap(c));
}
template <class T>
T mad_hi(T a, T b, T c) {
  return add(mul_hi(a, b), c);
}
template <class T>
Wide<T> mad_wide(T a, T b, Wide<T> c) {
  return add<Wide<T>>(mul_wide(a, b), c);
}

std::int32_t clamp_s32(std::int64_t value) {
  if (value > std::numeric_limits<std::int32_t>::max()) return std::numeric_limits<std::int32_t>::max();
  if (value < std::numeric_limits<std::int32_t>::min()) return std::numeric_limits<std::int32_t>::min();
  return static_cast<std::int32_t>(value);
}
std::int32_t add_sat(std::int32_t a, std::int32_t b) { return clamp_s32(std::int64_t{a} + b); }
std::int32_t sub_sat(std::int32_t a, std::int32_t b) { return clamp_s32(std::int64_t{a} - b); }
std::int32_t mad_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return clamp_s32(std::int64_t{mul_hi(a, b)} + c);
}

template <class T>
std::int64_t low_24(T value) {
  const auto shifted = static_cast<std::uint32_t>(value) << 8;
  return std::int64_t{static_cast<T>(shifted) >> 8};
}
template <class T>
T mul24_lo(T a, T b) {
  return static_cast<T>(low_24(a) * low_24(b));
}
template <class T>
T mul24_hi(T a, T b) {
  return static_cast<T>((low_24(a) * low_24(b)) >> 16);
}
template <class T>
T mad24_lo(T a, T b, T c) {
  return add(mul24_lo(a, b), c);
}
template <class T>
T mad24_hi(T a, T b, T c) {
  return add(mul24_hi(a, b), c);
}
std::int32_t mad24_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return clamp_s32(std::int64_t{mul24_hi(a, b)} + c);
}

template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return sub(T{0}, a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T>
T negate(T a) {
  return sub(T{0}, a);
}
template <class T>
T absolute(T a) {
  return a < 0 ? negate(a) : a;
}
template <class T>
T minimum(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T sum_of_differences(T a, T b, T c) {
  return add(c, a < b ? sub(b, a) : sub(a, b));
}

std::int32_t minimum_relu(std::int32_t a, std::int32_t b) { return maximum(minimum(a, b), 0); }
std::int32_t maximum_relu(std::int32_t a, std::int32_t b) { return maximum(maximum(a, b), 0); }

template <class T, T (*function)(T, T)>
std::uint32_t pairwise(const MicroOp& op, std::uint32_t a, std::uint32_t b) {
  const auto half = [&](int shift) {
    T result = function(static_cast<T>(a >> shift), static_cast<T>(b >> shift));
    if (op.has(relu)) result = maximum(result, T{0});
    return static_cast<std::uint32_t>(static_cast<std::uint16_t>(result)) << shift;
  };
  return half(0) | half(16);
}

/// detail: 1 when a is signed, 2 when b is; dp2a: 4 for the upper half of b.
std::int64_t dot_element(std::uint32_t bits, int width, bool is_signed) {
  const auto value = static_cast<std::int64_t>(bits & ((1U << width) - 1U));
  return is_signed && (value >> (width - 1)) != 0 ? value - (std::int64_t{1} << width) : value;
}
std::uint32_t dp4a(const MicroOp& op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::int64_t sum = c;
  for (int i = 0; i < 32; i += 8) {
    sum += dot_element(a >> i, 8, (op.detail & 1) != 0) * dot_element(b >> i, 8, (op.detail & 2) != 0);
  }
  return static_cast<std::uint32_t>(sum);
}
std::uint32_t dp2a(const MicroOp& op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::int64_t sum = c;
  const std::uint32_t bytes = (op.detail & 4) != 0 ? b >> 16 : b;
  for (int i = 0; i < 2; ++i) {
    sum += dot_element(a >> (16 * i), 16, (op.detail & 1) != 0) *
           dot_element(bytes >> (8 * i), 8, (op.detail & 2) != 0);
  }
  return static_cast<std::uint32_t>(sum);
}

Selected select_add(const ptx::Instruction& i) {
  if (i.modifiers.saturate) return lane_operation<&add_sat>();
  if (i.type == Type::U16x2 || i.type == Type::S16x2) return lane_operation<&pairwise<std::uint16_t, &add>>();
  return with_integer(i.type, []<class T>(T) { return lane_operation<&add<T>>(); });
}
Selected select_sub(const ptx::Instruction& i) {
  if (i.modifiers.saturate) return lane_operation<&sub_sat>();
  return with_integer(i.type, []<class T>(T) { return lane_operation<&sub<T>>(); });
}
Selected select_mul(const ptx::Instruction& i) {
  return with_integer(i.type, [&]<class T>(T) -> Selected {
    if (i.modifiers.half == Half::Hi) return lane_operation<&mul_hi<T>>();
    if (i.modifiers.half == Half::Lo) return lane_operation<&mul_lo<T>>();
    if constexpr (sizeof(T) < 8) return lane_operation<&mul_wide<T>>();
    return {};
  });
}
Selected select_mad(const ptx::Instruction& i) {
  if (i.modifiers.saturate) return lane_operation<&mad_hi_sat>();
  return with_integer(i.type, [&]<class T>(T) -> Selected {
    if (i.modifiers.half == Half::Hi) return lane_operation<&mad_hi<T>>();
    if (i.modifiers.half == Half::Lo) return lane_operation<&mad_lo<T>>();
    if constexpr (sizeof(T) < 8) return lane_operation<&mad_wide<T>>();
    return {};
  });
}
Selected select_mul24(const ptx::Instruction& i) {
  const bool high = i.modifiers.half == Half::Hi;
  if (i.type == Type::S32) {
    return high ? lane_operation<&mul24_hi<std::int32_t>>() : lane_operation<&mul24_lo<std::int32_t>>();
  }
  return high ? lane_operation<&mul24_hi<std::uint32_t>>() : lane_operation<&mul24_lo<std::uint32_t>>();
}
Selected select_mad24(const ptx::Instruction& i) {
  const bool high = i.modifiers.half == Half::Hi;
  if (i.modifiers.saturate) return lane_operation<&mad24_hi_sat>();
  if (i.type == Type::S32) {
    return high ? lane_operation<&mad24_hi<std::int32_t>>() : lane_operation<&mad24_lo<std::int32_t>>();
  }
  return high ? lane_operation<&mad24_hi<std::uint32_t>>() : lane_operation<&mad24_lo<std::uint32_t>>();
}
Selected select_min(const ptx::Instruction& i) {
  if (i.type == Type::U16x2) return lane_operation<&pairwise<std::uint16_t, &minimum>>();
  if (i.type == Type::S16x2) return lane_operation<&pairwise<std::int16_t, &minimum>>();
  if (i.modifiers.relu) return lane_operation<&minimum_relu>();
  return with_integer(i.type, []<class T>(T) { return lane_operation<&minimum<T>>(); });
}
Selected select_max(const ptx::Instruction& i) {
  if (i.type == Type::U16x2) return lane_operation<&pairwise<std::uint16_t, &maximum>>();
  if (i.type == Type::S16x2) return lane_operation<&pairwise<std::int16_t, &maximum>>();
  if (i.modifiers.relu) return lane_operation<&maximum_relu>();
  return with_integer(i.type, []<class T>(T) { return lane_operation<&maximum<T>>(); });
}

}  // namespace

Selected select_integer(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Add:
      return select_add(i);
    case Opcode::Sub:
      return select_sub(i);
    case Opcode::Mul:
      return select_mul(i);
    case Opcode::Mad:
      return select_mad(i);
    case Opcode::Mul24:
      return select_mul24(i);
    case Opcode::Mad24:
      return select_mad24(i);
    case Opcode::Min:
      return select_min(i);
    case Opcode::Max:
      return select_max(i);
    case Opcode::Div:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&divide<T>>(); });
    case Opcode::Rem:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&remainder<T>>(); });
    case Opcode::Neg:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&negate<T>>(); });
    case Opcode::Abs:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&absolute<T>>(); });
    case Opcode::Sad:
      return with_integer(i.type, []<class T>(T) { return lane_operation<&sum_of_differences<T>>(); });
    case Opcode::Dp4a:
      return lane_operation<&dp4a>();
    case Opcode::Dp2a:
      return lane_operation<&dp2a>();
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
