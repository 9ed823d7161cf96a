// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/atomics.h"

#include "softgpu/interpreter/half.h"

namespace firebreak::softgpu {

namespace {

using ptx::AtomicOp;
using ptx::Type;

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
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
T exchange(T, T b) {
  return b;
}
template <class T>
T minimum(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) {
  return a < b ? b : a;
}
std::uint32_t increment(std::uint32_t a, std::uint32_t b) { return a >= b ? 0 : a + 1; }
std::uint32_t decrement(std::uint32_t a, std::uint32_t b) { return a == 0 || a > b ? b : a - 1; }
template <>
Half add(Half a, Half b) {
  return to_half(to_float(a) + to_float(b));
}
template <>
Bfloat add(Bfloat a, Bfloat b) {
  return to_bfloat(add_to_odd(to_float(a), to_float(b)));
}
template <>
Half2 add(Half2 a, Half2 b) {
  return {add(a.low, b.low), add(a.high, b.high)};
}
template <>
Bfloat2 add(Bfloat2 a, Bfloat2 b) {
  return {add(a.low, b.low), add(a.high, b.high)};
}

template <class T, T (*function)(T, T)>
void update(Warp& warp, const MicroOp& op, LaneMask mask, const LaneHosts& hosts) {
  using Bits = Storage<T>;
  auto* const destination = warp.pointer<Bits>(op.operands[0]);
  const auto* const operand = warp.pointer<const Bits>(op.operands[1]);
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    auto* const cell = reinterpret_cast<Bits*>(hosts[lane]);
    const T value = std::bit_cast<T>(operand[lane]);
    Bits old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    Bits next;
    do {
      next = std::bit_cast<Bits>(function(std::bit_cast<T>(old), value));
    } while (!__atomic_compare_exchange_n(cell, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    destination[lane] = old;
  }
}

template <class Bits>
void compare_and_swap(Warp& warp, const MicroOp& op, LaneMask mask, const LaneHosts& hosts) {
  auto* const destination = warp.pointer<Bits>(op.operands[0]);
  const auto* const expected = warp.pointer<const Bits>(op.operands[1]);
  const auto* const desired = warp.pointer<const Bits>(op.operands[2]);
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    Bits old = expected[lane];
    __atomic_compare_exchange_n(reinterpret_cast<Bits*>(hosts[lane]), &old, desired[lane], false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    destination[lane] = old;
  }
}

Transfer select_add(Type type) {
  switch (type) {
    case Type::U32:
    case Type::S32:
      return &update<std::uint32_t, &add>;
    case Type::U64:
    case Type::S64:
      return &update<std::uint64_t, &add>;
    case Type::F32:
      return &update<float, &add>;
    case Type::F64:
      return &update<double, &add>;
    case Type::F16:
      return &update<Half, &add>;
    case Type::Bf16:
      return &update<Bfloat, &add>;
    case Type::F16x2:
      return &update<Half2, &add>;
    case Type::Bf16x2:
      return &update<Bfloat2, &add>;
    default:
      return nullptr;
  }
}

template <class T>
Transfer select_bitwise(AtomicOp operation) {
  switch (operation) {
    case AtomicOp::And:
      return &update<T, &bit_and>;
    case AtomicOp::Or:
      return &update<T, &bit_or>;
    case AtomicOp::Xor:
      return &update<T, &bit_xor>;
    case AtomicOp::Exch:
      return &update<T, &exchange>;
    case AtomicOp::Cas:
      return &compare_and_swap<T>;
    default:
      return nullptr;
  }
}

template <class T>
Transfer select_extreme(AtomicOp operation) {
  return operation == AtomicOp::Min ? &update<T, &minimum> : &update<T, &maximum>;
}

Transfer select_min_max(AtomicOp operation, Type type) {
  switch (type) {
    case Type::U32:
      return select_extreme<std::uint32_t>(operation);
    case Type::S32:
      return select_extreme<std::int32_t>(operation);
    case Type::U64:
      return select_extreme<std::uint64_t>(operation);
    case Type::S64:
      return select_extreme<std::int64_t>(operation);
    default:
      return nullptr;
  }
}

}  // namespace

Transfer select_atomic(AtomicOp operation, Type type) {
  switch (operation) {
    case AtomicOp::Add:
      return select_add(type);
    case AtomicOp::Min:
    case AtomicOp::Max:
      return select_min_max(operation, type);
    case AtomicOp::Inc:
      return type == Type::U32 ? &update<std::uint32_t, &increment> : nullptr;
    case AtomicOp::Dec:
      return type == Type::U32 ? &update<std::uint32_t, &decrement> : nullptr;
    default:
      break;
  }
  switch (ptx::size_bytes(type)) {
    case 2:
      return operation == AtomicOp::Cas ? &compare_and_swap<std::uint16_t> : nullptr;
    case 4:
      return select_bitwise<std::uint32_t>(operation);
    case 8:
      return select_bitwise<std::uint64_t>(operation);
    default:
      return nullptr;
  }
}

}  // namespace firebreak::softgpu
