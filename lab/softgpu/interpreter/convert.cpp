// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "softgpu/interpreter/float_rules.h"
#include "softgpu/interpreter/half.h"
#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Rounding;
using ptx::Type;
using ptx::TypeKind;

/// A float that is tf32 as a destination.
struct Tensor32 {
  std::uint32_t bits = 0;
};

// Integer to integer.
template <class D, class S>
D truncate(S value) {
  return static_cast<D>(value);
}
template <class D, class S>
D clamp(S value) {
  using Limits = std::numeric_limits<D>;
  if (std::cmp_less(value, Limits::min())) return Limits::min();
  if (std::cmp_greater(value, Limits::max())) return Limits::max();
  return static_cast<D>(value);
}

// Float to integer: rounded, then clamped to what the type can hold.
double round_to_whole(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Rni:
      return std::nearbyint(value);
    case Rounding::Rmi:
      return std::floor(value);
    case Rounding::Rpi:
      return std::ceil(value);
    case Rounding::Rzi:
      return std::trunc(value);
    default:
      return value;
  }
}
template <class S>
double widened(S value) {
  if constexpr (std::is_floating_point_v<S>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(to_float(value));
  }
}
template <class D, class S>
D to_integer(const MicroOp& op, S source) {
  using Limits = std::numeric_limits<D>;
  double value = widened(source);
  if (op.has(flush_subnormals) && std::fabs(value) < 0x1p-126) value = 0;
  if (value != value) {
    // The ISA asks for zero, except where the source or the destination has 64 bits.
    if (sizeof(S) < 8 && sizeof(D) < 8) return 0;
    return static_cast<D>(std::make_unsigned_t<D>{1} << (sizeof(D) * 8 - 1));
  }
  if (op.rounding != Rounding::Rzi) value = round_to_whole(value, op.rounding);
  constexpr auto above = static_cast<double>(Limits::max() / 2 + 1) * 2;  // max + 1, exact
  if (value >= above) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<D>(value);
}

// Integer to float.
template <class D, class S>
D convert_number(S value) {
  return static_cast<D>(value);
}
template <class D, class S>
D from_integer(const MicroOp& op, S value) {
  D result = in_rounding<&convert_number<D, S>>(op.rounding, value);
  return op.has(saturate) ? saturated(result) : result;
}
/// A 64-bit integer as a double whose last bit says whether something was lost.
template <class S>
double to_odd_double(S value) {
  const bool negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  if (magnitude >> 53 != 0)
    magnitude = (magnitude & ~std::uint64_t{0x7FF}) | ((magnitude & 0x7FF) != 0 ? 0x800 : 0);
  const auto result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

// This converts to a float, from a double that holds the value exactly or rounded to odd.
template <class D>
D encode(double value, Rounding rounding) {
  if constexpr (std::is_same_v<D, Half>) {
    return to_half(value, rounding);
  } else if constexpr (std::is_same_v<D, Bfloat>) {
    return to_bfloat(value, rounding);
  } else if constexpr (std::is_same_v<D, Tensor32>) {
    return {std::bit_cast<std::uint32_t>(to_tf32(value, rounding))};
  } else {
    return canonical(in_rounding<&convert_number<D, double>>(rounding, value));
  }
}
template <class D>
constexpr double largest_finite() {
  if constexpr (std::is_same_v<D, Half>) return 65504.0;
  if constexpr (std::is_same_v<D, Bfloat>) return 0x1.FEp127;
  if constexpr (std::is_same_v<D, Tensor32>) return 0x1.FFCp127;
  return static_cast<double>(std::numeric_limits<float>::max());
}

template <class D>
D finish(const MicroOp& op, double value) {
  value = round_to_whole(value, op.rounding);
  if (op.has(relu) && value < 0) value = 0;
  if (op.has(saturate)) value = saturated(value);
  if (op.has(saturate_finite) && std::fabs(value) > largest_finite<D>()) {
    value = std::copysign(largest_finite<D>(), value);
  }
  D result = encode<D>(value, op.rounding);
  if constexpr (std::is_same_v<D, float>) {
    if (op.has(flush_subnormals)) result = flushed(result);
  }
  return result;
}
template <class S>
double read(const MicroOp& op, S source) {
  if constexpr (std::is_same_v<S, float>) {
    if (op.has(flush_subnormals)) return static_cast<double>(flushed(source));
  }
  return widened(source);
}
template <class D, class S>
D convert_float(const MicroOp& op, S source) {
  return finish<D>(op, read(op, source));
}
template <class D, class S>
D small_from_integer(const MicroOp& op, S value) {
  return finish<D>(op, to_odd_double(value));
}

// Two floats to a packed pair: the first one is the upper half.
Half2 pack_half(const MicroOp& op, float high, float low) {
  return {finish<Half>(op, read(op, low)), finish<Half>(op, read(op, high))};
}
Bfloat2 pack_bfloat(const MicroOp& op, float high, float low) {
  return {finish<Bfloat>(op, read(op, low)), finish<Bfloat>(op, read(op, high))};
}

// The common conversions, without flags.
float half_to_float(Half value) { return canonical(to_float(value)); }
float bfloat_to_float(Bfloat value) { return canonical(to_float(value)); }
Half float_to_half(float value) { return to_half(value); }
Bfloat float_to_bfloat(float value) { return to_bfloat(value); }
double float_to_double(float value) { return static_cast<double>(value); }
float double_to_float(double value) { return canonical(static_cast<float>(value)); }

template <class D>
std::uint32_t saturated_bits(std::int32_t value) {
  return static_cast<std::make_unsigned_t<D>>(clamp<D>(value));
}
template <class D>
std::uint32_t pack_16(std::int32_t a, std::int32_t b) {
  return (saturated_bits<D>(a) << 16) | saturated_bits<D>(b);
}
template <class D>
std::uint32_t pack_8(std::int32_t a, std::int32_t b, std::uint32_t c) {
  return (c << 16) | (saturated_bits<D>(a) << 8) | saturated_bits<D>(b);
}

/// Like with_integer, with 8 bits too.
template <class F>
Selected with_any_integer(Type type, F f) {
  switch (type) {
    case Type::B8:
    case Type::U8:
      return f(std::uint8_t{});
    case Type::S8:
      return f(std::int8_t{});
    default:
      return with_integer(type, f);
  }
}
template <class F>
Selected with_float(Type type, F f) {
  switch (type) {
    case Type::F16:
      return f(Half{});
    case Type::Bf16:
      return f(Bfloat{});
    case Type::F32:
      return f(float{});
    case Type::F64:
      return f(double{});
    default:
      return {};
  }
}

Selected integer_to_integer(const ptx::Instruction& i) {
  return with_any_integer(i.type, [&]<class D>(D) {
    return with_any_integer(i.source_type, [&]<class S>(S) {
      return i.modifiers.saturate ? lane_operation<&clamp<D, S>>() : lane_operation<&truncate<D, S>>();
    });
  });
}
Selected float_to_integer(const ptx::Instruction& i) {
  return with_any_integer(i.type, [&]<class D>(D) {
    return with_float(i.source_type, []<class S>(S) { return lane_operation<&to_integer<D, S>>(); });
  });
}
Selected integer_to_float(const ptx::Instruction& i) {
  const bool plain = !i.modifiers.saturate && i.modifiers.rounding == Rounding::Rn;
  return with_float(i.type, [&]<class D>(D) {
    return with_any_integer(i.source_type, [&]<class S>(S) {
      if constexpr (std::is_floating_point_v<D>) {
        return plain ? lane_operation<&convert_number<D, S>>() : lane_operation<&from_integer<D, S>>();
      } else {
        return lane_operation<&small_from_integer<D, S>>();
      }
    });
  });
}

bool is_plain(const ptx::Modifiers& m) {
  const bool nearest = m.rounding == Rounding::None || m.rounding == Rounding::Rn;
  return nearest && !m.ftz && !m.saturate && !m.saturate_finite && !m.relu;
}
Selected common_float_to_float(Type to, Type from) {
  if (to == Type::F32 && from == Type::F16) return lane_operation<&half_to_float>();
  if (to == Type::F32 && from == Type::Bf16) return lane_operation<&bfloat_to_float>();
  if (to == Type::F32 && from == Type::F64) return lane_operation<&double_to_float>();
  if (to == Type::F16 && from == Type::F32) return lane_operation<&float_to_half>();
  if (to == Type::Bf16 && from == Type::F32) return lane_operation<&float_to_bfloat>();
  if (to == Type::F64 && from == Type::F32) return lane_operation<&float_to_double>();
  return {};
}
Selected float_to_float(const ptx::Instruction& i) {
  if (is_plain(i.modifiers)) {
    const Selected common = common_float_to_float(i.type, i.source_type);
    if (common) return common;
  }
  if (i.type == Type::Tf32) return lane_operation<&convert_float<Tensor32, float>>();
  return with_float(i.type, [&]<class D>(D) {
    return with_float(i.source_type, []<class S>(S) { return lane_operation<&convert_float<D, S>>(); });
  });
}

Selected select_pack(const ptx::Instruction& i) {
  switch (i.type) {
    case Type::U16:
      return lane_operation<&pack_16<std::uint16_t>>();
    case Type::S16:
      return lane_operation<&pack_16<std::int16_t>>();
    case Type::U8:
      return lane_operation<&pack_8<std::uint8_t>>();
    case Type::S8:
      return lane_operation<&pack_8<std::int8_t>>();
    default:
      return {};
  }
}

}  // namespace

Selected select_convert(const ptx::Instruction& i) {
  if (i.opcode == ptx::Opcode::CvtPack) return select_pack(i);
  if (i.type == Type::F16x2 && i.source_type == Type::F32) return lane_operation<&pack_half>();
  if (i.type == Type::Bf16x2 && i.source_type == Type::F32) return lane_operation<&pack_bfloat>();
  const bool to_float = ptx::kind_of(i.type) == TypeKind::Float || i.type == Type::Tf32;
  const bool from_float = ptx::kind_of(i.source_type) == TypeKind::Float;
  if (to_float) return from_float ? float_to_float(i) : integer_to_float(i);
  return from_float ? float_to_integer(i) : integer_to_integer(i);
}

}  // namespace firebreak::softgpu
