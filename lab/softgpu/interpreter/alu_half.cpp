// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "softgpu/interpreter/float_rules.h"
#include "softgpu/interpreter/half.h"
#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Opcode;
using ptx::Type;

template <class T>
T encode(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else {
    return to_bfloat(value);
  }
}
template <class T>
T encode(float value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else {
    return to_bfloat(value);
  }
}
template <class T>
constexpr bool is_nan(T value) {
  constexpr std::uint16_t infinity = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
  return (value.bits & 0x7FFFU) > infinity;
}
template <class T>
T flush(const MicroOp& op, T value) {
  constexpr std::uint16_t exponent = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
  if (!op.has(flush_subnormals) || (value.bits & exponent) != 0) return value;
  return {static_cast<std::uint16_t>(value.bits & 0x8000U)};
}
template <class T>
T finish(const MicroOp& op, T value) {
  value = flush(op, value);
  const bool negative = (value.bits & 0x8000U) != 0;
  if (op.has(saturate)) return encode<T>(saturated(to_float(value)));
  if (op.has(relu) && negative && !is_nan(value)) return T{};
  return value;
}

// Sums and products of f16 are exact or rounded innocuously in float; those of bf16 in double, to odd.
template <class T>
struct Add {
  static T apply(T a, T b) { return encode<T>(add_to_odd(to_float(a), to_float(b))); }
};
template <>
struct Add<Half> {
  static Half apply(Half a, Half b) { return to_half(to_float(a) + to_float(b)); }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return Add<T>::apply(a, {static_cast<std::uint16_t>(b.bits ^ 0x8000U)}); }
};
template <class T>
struct Mul {
  static T apply(T a, T b) {
    return encode<T>(static_cast<double>(to_float(a)) * static_cast<double>(to_float(b)));
  }
};
template <>
struct Mul<Half> {
  static Half apply(Half a, Half b) { return to_half(to_float(a) * to_float(b)); }
};
template <class T>
struct Fma {
  static T apply(T a, T b, T c) {
    const double product = static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
    return encode<T>(add_to_odd(product, static_cast<double>(to_float(c))));
  }
};
template <class T>
struct Neg {
  static T apply(T a) { return {static_cast<std::uint16_t>(a.bits ^ 0x8000U)}; }
};
template <class T>
struct Abs {
  static T apply(T a) { return {static_cast<std::uint16_t>(a.bits & 0x7FFFU)}; }
};
template <class T>
struct Exponential {
  static T apply(T a) { return encode<T>(std::exp2(static_cast<double>(to_float(a)))); }
};
template <class T>
struct Tangent {
  static T apply(T a) { return encode<T>(std::tanh(static_cast<double>(to_float(a)))); }
};

/// One operation on scalars, with the rules of the flags around it.
template <template <class> class Operation, class T, class... S>
T scalar(const MicroOp& op, S... values) {
  return finish(op, Operation<T>::apply(flush(op, values)...));
}
/// The same on both halves.
template <template <class> class Operation, class Pair, class... S>
Pair pair(const MicroOp& op, S... values) {
  using T = decltype(Pair::low);
  return {scalar<Operation, T>(op, values.low...), scalar<Operation, T>(op, values.high...)};
}

template <bool maximum>
struct Extreme {
  template <class T>
  static T apply(const MicroOp& op, T a, T b) {
    a = flush(op, a);
    b = flush(op, b);
    const auto sign = static_cast<std::uint16_t>((a.bits ^ b.bits) & 0x8000U);
    if (op.has(xor_sign)) {
      a = Abs<T>::apply(a);
      b = Abs<T>::apply(b);
    }
    T result = choose(op, a, b);
    if (op.has(xor_sign) && !is_nan(result)) result.bits = static_cast<std::uint16_t>(result.bits | sign);
    return result;
  }
  template <class T>
  static T choose(const MicroOp& op, T a, T b) {
    if (is_nan(a) || is_nan(b)) {
      if (op.has(propagate_nan) || (is_nan(a) && is_nan(b))) return {canonical_nan_16};
      return is_nan(a) ? b : a;
    }
    const float left = to_float(a);
    const float right = to_float(b);
    if (left == right) return ((a.bits & 0x8000U) != 0) != maximum ? a : b;
    return (left < right) != maximum ? a : b;
  }
};
template <bool maximum, class T>
T extreme(const MicroOp& op, T a, T b) {
  return Extreme<maximum>::apply(op, a, b);
}
template <bool maximum, class Pair>
Pair extreme_pair(const MicroOp& op, Pair a, Pair b) {
  return {Extreme<maximum>::apply(op, a.low, b.low), Extreme<maximum>::apply(op, a.high, b.high)};
}

template <template <class> class Operation, int sources>
Selected select_operation(Type type) {
  const auto pick = []<class T, class Pair>(bool packed, T, Pair) {
    if constexpr (sources == 1) {
      return packed ? lane_operation<&pair<Operation, Pair, Pair>>()
                    : lane_operation<&scalar<Operation, T, T>>();
    } else if constexpr (sources == 2) {
      return packed ? lane_operation<&pair<Operation, Pair, Pair, Pair>>()
                    : lane_operation<&scalar<Operation, T, T, T>>();
    } else {
      return packed ? lane_operation<&pair<Operation, Pair, Pair, Pair, Pair>>()
                    : lane_operation<&scalar<Operation, T, T, T, T>>();
    }
  };
  if (type == Type::F16 || type == Type::F16x2) return pick(type == Type::F16x2, softgpu::Half{}, Half2{});
  return pick(type == Type::Bf16x2, Bfloat{}, Bfloat2{});
}

template <bool maximum>
Selected select_extreme(Type type) {
  switch (type) {
    case Type::F16:
      return lane_operation<&extreme<maximum, softgpu::Half>>();
    case Type::F16x2:
      return lane_operation<&extreme_pair<maximum, Half2>>();
    case Type::Bf16:
      return lane_operation<&extreme<maximum, Bfloat>>();
    default:
      return lane_operation<&extreme_pair<maximum, Bfloat2>>();
  }
}

}  // namespace

Selected select_half(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Add:
      return select_operation<Add, 2>(i.type);
    case Opcode::Sub:
      return select_operation<Sub, 2>(i.type);
    case Opcode::Mul:
      return select_operation<Mul, 2>(i.type);
    case Opcode::Fma:
      return select_operation<Fma, 3>(i.type);
    case Opcode::Neg:
      return select_operation<Neg, 1>(i.type);
    case Opcode::Abs:
      return select_operation<Abs, 1>(i.type);
    case Opcode::Ex2:
      return select_operation<Exponential, 1>(i.type);
    case Opcode::Tanh:
      return select_operation<Tangent, 1>(i.type);
    case Opcode::Min:
      return i.operands.size() == 3 ? select_extreme<false>(i.type) : Selected{};
    case Opcode::Max:
      return i.operands.size() == 3 ? select_extreme<true>(i.type) : Selected{};
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
