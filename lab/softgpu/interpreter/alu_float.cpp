// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/float_rules.h"
#include "softgpu/interpreter/fused.h"
#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Opcode;
using ptx::Rounding;
using ptx::Type;

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T sub(T a, T b) {
  return a - b;
}
template <class T>
T mul(T a, T b) {
  return a * b;
}
template <class T>
T divide(T a, T b) {
  return a / b;
}
template <class T>
T fused(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <class T>
T reciprocal(T a) {
  return T{1} / a;
}
template <class T>
T root(T a) {
  return std::sqrt(a);
}

// Any accuracy would do for the approximations: computed in double, they are the same on every machine.
float reciprocal_root(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
float sine(float a) { return static_cast<float>(std::sin(static_cast<double>(a))); }
float cosine(float a) { return static_cast<float>(std::cos(static_cast<double>(a))); }
float exponential_2(float a) { return static_cast<float>(std::exp2(static_cast<double>(a))); }
float logarithm_2(float a) { return static_cast<float>(std::log2(static_cast<double>(a))); }
float hyperbolic_tangent(float a) { return static_cast<float>(std::tanh(static_cast<double>(a))); }

/// rcp and rsqrt.approx.ftz.f64 work on the upper 32 bits alone.
double upper_bits(double value) {
  if (std::fabs(value) < std::numeric_limits<double>::min()) return std::copysign(0.0, value);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & 0xFFFF'FFFF'0000'0000U);
}
double coarse_reciprocal(double a) { return upper_bits(1.0 / upper_bits(a)); }
double coarse_reciprocal_root(double a) { return upper_bits(1.0 / std::sqrt(upper_bits(a))); }

/// Round to nearest, neither .ftz nor .sat: the common case, kept simple so that it vectorises.
template <auto function, class T, class... S>
T plain(S... values) {
  return canonical(function(values...));
}
/// Everything else, by the micro-op's flags.
template <auto function, class T, class... S>
T by_flags(const MicroOp& op, S... values) {
  T result;
  if (op.has(flush_subnormals)) {
    result = flushed(in_rounding<function>(op.rounding, flushed(values)...));
  } else {
    result = in_rounding<function>(op.rounding, values...);
  }
  if (op.has(saturate)) result = saturated(result);
  return canonical(result);
}

bool is_plain(const ptx::Modifiers& modifiers) {
  const bool nearest = modifiers.rounding == Rounding::None || modifiers.rounding == Rounding::Rn;
  return nearest && !modifiers.ftz && !modifiers.saturate;
}

template <auto function, class T>
Selected one(const ptx::Instruction& i) {
  return is_plain(i.modifiers) ? lane_operation<&plain<function, T, T>>()
                               : lane_operation<&by_flags<function, T, T>>();
}
template <auto function, class T>
Selected two(const ptx::Instruction& i) {
  return is_plain(i.modifiers) ? lane_operation<&plain<function, T, T, T>>()
                               : lane_operation<&by_flags<function, T, T, T>>();
}

template <class T>
T negate(const MicroOp& op, T a) {
  return op.has(flush_subnormals) ? flushed(-a) : -a;
}
template <class T>
T absolute(const MicroOp& op, T a) {
  return op.has(flush_subnormals) ? flushed(std::fabs(a)) : std::fabs(a);
}
/// copysign d, a, b: the sign of a with the magnitude of b.
template <class T>
T copy_sign(T sign, T magnitude) {
  return std::copysign(magnitude, sign);
}

template <class T>
T minimum(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
/// The rules min and max share; one NaN loses against a number unless .NaN is there.
template <auto choose, class T>
T select_extreme(const MicroOp& op, T a, T b) {
  if (op.has(flush_subnormals)) {
    a = flushed(a);
    b = flushed(b);
  }
  const bool negative = std::signbit(a) != std::signbit(b);
  if (op.has(xor_sign)) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  T result = choose(a, b);
  if (a != a || b != b) {
    const bool none = (a != a && b != b) || op.has(propagate_nan);
    result = none ? std::numeric_limits<T>::quiet_NaN() : (a != a ? b : a);
  }
  if (op.has(xor_sign)) result = negative ? -result : result;
  return canonical(result);
}
template <auto choose, class T>
T select_extreme_of_three(const MicroOp& op, T a, T b, T c) {
  return select_extreme<choose, T>(op, select_extreme<choose, T>(op, a, b), c);
}

template <class T>
Selected select_fma(const ptx::Instruction& i) {
  if (!is_plain(i.modifiers)) return lane_operation<&by_flags<&fused<T>, T, T, T, T>>();
  if constexpr (std::is_same_v<T, float>) {
    if (host_has_fma()) return fused_f32();
  }
  return lane_operation<&plain<&fused<T>, T, T, T, T>>();
}

template <class T>
Selected select_arithmetic(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Add:
      return two<&add<T>, T>(i);
    case Opcode::Sub:
      return two<&sub<T>, T>(i);
    case Opcode::Mul:
      return two<&mul<T>, T>(i);
    case Opcode::Div:
      return two<&divide<T>, T>(i);
    case Opcode::Mad:
    case Opcode::Fma:
      return select_fma<T>(i);
    case Opcode::Sqrt:
      return one<&root<T>, T>(i);
    case Opcode::Neg:
      return lane_operation<&negate<T>>();
    case Opcode::Abs:
      return lane_operation<&absolute<T>>();
    case Opcode::Copysign:
      return lane_operation<&copy_sign<T>>();
    case Opcode::Min:
      return i.operands.size() == 4 ? lane_operation<&select_extreme_of_three<&minimum<T>, T>>()
                                    : lane_operation<&select_extreme<&minimum<T>, T>>();
    case Opcode::Max:
      return i.operands.size() == 4 ? lane_operation<&select_extreme_of_three<&maximum<T>, T>>()
                                    : lane_operation<&select_extreme<&maximum<T>, T>>();
    default:
      return {};
  }
}

Selected select_single(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Rcp:
      return one<&reciprocal<float>, float>(i);
    case Opcode::Rsqrt:
      return one<&reciprocal_root, float>(i);
    case Opcode::Sin:
      return one<&sine, float>(i);
    case Opcode::Cos:
      return one<&cosine, float>(i);
    case Opcode::Ex2:
      return one<&exponential_2, float>(i);
    case Opcode::Lg2:
      return one<&logarithm_2, float>(i);
    case Opcode::Tanh:
      return one<&hyperbolic_tangent, float>(i);
    default:
      return select_arithmetic<float>(i);
  }
}

Selected select_double(const ptx::Instruction& i) {
  if (i.opcode == Opcode::Rsqrt) return lane_operation<&coarse_reciprocal_root>();
  if (i.opcode != Opcode::Rcp) return select_arithmetic<double>(i);
  return i.modifiers.approximate ? lane_operation<&coarse_reciprocal>() : one<&reciprocal<double>, double>(i);
}

}  // namespace

Selected select_float(const ptx::Instruction& i) {
  return i.type == Type::F64 ? select_double(i) : select_single(i);
}

}  // namespace firebreak::softgpu
