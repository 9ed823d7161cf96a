// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/float_rules.h"
#include "softgpu/interpreter/half.h"
#include "softgpu/interpreter/operations.h"

namespace firebreak::softgpu {

namespace {

using ptx::Compare;
using ptx::Opcode;
using ptx::Type;

/// The plain comparisons are false on NaN, the unordered ones (...u) true.
template <Compare how, class T>
bool compare(T a, T b) {
  switch (how) {
    case Compare::Eq:
      return a == b;
    case Compare::Ne:
      return a < b || a > b;
    case Compare::Lo:
    case Compare::Lt:
      return a < b;
    case Compare::Ls:
    case Compare::Le:
      return a <= b;
    case Compare::Hi:
    case Compare::Gt:
      return a > b;
    case Compare::Hs:
    case Compare::Ge:
      return a >= b;
    case Compare::Equ:
      return !(a < b || a > b);
    case Compare::Neu:
      return a != b;
    case Compare::Ltu:
      return !(a >= b);
    case Compare::Leu:
      return !(a > b);
    case Compare::Gtu:
      return !(a <= b);
    case Compare::Geu:
      return !(a < b);
    case Compare::Num:
      return a == a && b == b;
    case Compare::Nan:
      return a != a || b != b;
    case Compare::None:
      break;
  }
  return false;
}

template <Compare how>
struct Plain {
  template <class T>
  static bool apply(T a, T b) {
    return compare<how, T>(a, b);
  }
};
template <Compare how>
struct Flushed {
  static bool apply(float a, float b) { return compare<how, float>(flushed(a), flushed(b)); }
};
template <Compare how, int half>
struct Small {
  static bool f16(const MicroOp& op, Half a, Half b) { return plain(op, to_float(a), to_float(b), 0x1p-14F); }
  static bool bf16(Bfloat a, Bfloat b) { return compare<how, float>(to_float(a), to_float(b)); }
  static bool f16x2(const MicroOp& op, Half2 a, Half2 b) {
    return half == 0 ? f16(op, a.low, b.low) : f16(op, a.high, b.high);
  }
  static bool bf16x2(Bfloat2 a, Bfloat2 b) { return half == 0 ? bf16(a.low, b.low) : bf16(a.high, b.high); }

 private:
  static bool plain(const MicroOp& op, float a, float b, float least_normal) {
    if (!op.has(flush_subnormals)) return compare<how, float>(a, b);
    return compare<how, float>(std::fabs(a) < least_normal ? 0.0F : a,
                               std::fabs(b) < least_normal ? 0.0F : b);
  }
};

template <Compare how>
Selected on_numbers(Type type, bool flush) {
  if (type == Type::F32 && flush) return lane_operation<&Flushed<how>::apply>();
  if (type == Type::F32) return lane_operation<&Plain<how>::template apply<float>>();
  if (type == Type::F64) return lane_operation<&Plain<how>::template apply<double>>();
  if constexpr (how < Compare::Equ) {
    return with_integer(type, []<class T>(T) { return lane_operation<&Plain<how>::template apply<T>>(); });
  }
  return {};
}
template <Compare how>
Selected on_type(Type type, bool flush, int half) {
  switch (type) {
    case Type::F16:
      return lane_operation<&Small<how, 0>::f16>();
    case Type::Bf16:
      return lane_operation<&Small<how, 0>::bf16>();
    case Type::F16x2:
      return half == 0 ? lane_operation<&Small<how, 0>::f16x2>() : lane_operation<&Small<how, 1>::f16x2>();
    case Type::Bf16x2:
      return half == 0 ? lane_operation<&Small<how, 0>::bf16x2>() : lane_operation<&Small<how, 1>::bf16x2>();
    default:
      return on_numbers<how>(type, flush);
  }
}

/// Calls f with the comparison as a constant.
template <class F>
auto with_compare(Compare how, F f) {
  using Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge;
  switch (how) {
    case Eq:
      return f.template operator()<Eq>();
    case Ne:
      return f.template operator()<Ne>();
    case Compare::Lo:
    case Lt:
      return f.template operator()<Lt>();
    case Compare::Ls:
    case Le:
      return f.template operator()<Le>();
    case Compare::Hi:
    case Gt:
      return f.template operator()<Gt>();
    case Compare::Hs:
    case Ge:
      return f.template operator()<Ge>();
    case Compare::Equ:
      return f.template operator()<Compare::Equ>();
    case Compare::Neu:
      return f.template operator()<Compare::Neu>();
    case Compare::Ltu:
      return f.template operator()<Compare::Ltu>();
    case Compare::Leu:
      return f.template operator()<Compare::Leu>();
    case Compare::Gtu:
      return f.template operator()<Compare::Gtu>();
    case Compare::Geu:
      return f.template operator()<Compare::Geu>();
    case Compare::Num:
      return f.template operator()<Compare::Num>();
    case Compare::Nan:
      return f.template operator()<Compare::Nan>();
    case Compare::None:
      break;
  }
  return f.template operator()<Compare::None>();
}

/// The value of true in one half stands in the immediate.
template <class Pair>
std::uint32_t packed_set(const MicroOp& op, Pair a, Pair b) {
  const auto one = [&](auto left, auto right) {
    return with_compare(static_cast<Compare>(op.detail),
                        [&]<Compare how>() { return compare<how, float>(to_float(left), to_float(right)); });
  };
  const auto value = static_cast<std::uint32_t>(op.immediate);
  return (one(a.low, b.low) ? value : 0U) | (one(a.high, b.high) ? value << 16 : 0U);
}

template <class T>
T from_predicate(const MicroOp& op, bool value) {
  return value ? static_cast<T>(op.immediate) : T{0};
}

template <class T>
T select(T a, T b, bool condition) {
  return condition ? a : b;
}
template <class T>
T select_sign(T a, T b, std::int32_t sign) {
  return sign >= 0 ? a : b;
}
template <class T>
T select_float_sign(const MicroOp& op, T a, T b, float sign) {
  return (op.has(flush_subnormals) ? flushed(sign) : sign) >= 0 ? a : b;
}

template <class T>
bool test(const MicroOp& op, T value) {
  switch (static_cast<ptx::TestKind>(op.detail)) {
    case ptx::TestKind::Finite:
      return std::isfinite(value);
    case ptx::TestKind::Infinite:
      return std::isinf(value);
    case ptx::TestKind::Number:
      return !std::isnan(value);
    case ptx::TestKind::NotANumber:
      return std::isnan(value);
    case ptx::TestKind::Normal:
      return std::isnormal(value);
    case ptx::TestKind::Subnormal:
      return std::fpclassify(value) == FP_SUBNORMAL;
    case ptx::TestKind::None:
      break;
  }
  return false;
}

}  // namespace

Selected select_comparison(const ptx::Instruction& i, Type type, int half) {
  return with_compare(i.modifiers.compare, [&]<Compare how>() -> Selected {
    if constexpr (how == Compare::None) return {};
    return on_type<how>(type, i.modifiers.ftz, half);
  });
}

Selected select_from_predicate(Type type) {
  return with_bits(type, []<class T>(T) { return lane_operation<&from_predicate<T>>(); });
}

Selected select_packed_set(Type source_type) {
  return source_type == Type::F16x2 ? lane_operation<&packed_set<Half2>>()
                                    : lane_operation<&packed_set<Bfloat2>>();
}

Selected select_choice(const ptx::Instruction& i) {
  switch (i.opcode) {
    case Opcode::Selp:
      return with_bits(i.type, []<class T>(T) { return lane_operation<&select<T>>(); });
    case Opcode::Slct:
      return with_bits(i.type, [&]<class T>(T) {
        return i.source_type == Type::F32 ? lane_operation<&select_float_sign<T>>()
                                          : lane_operation<&select_sign<T>>();
      });
    case Opcode::Testp:
      return i.type == Type::F64 ? lane_operation<&test<double>>() : lane_operation<&test<float>>();
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
