// SPDX-License-Identifier: Apache-2.0
/// Makes handlers out of functions of one lane: `lane_operation<&add<float>>()`. The types in the function's
/// signature are the widths of the operands; `bool` is a predicate. A first parameter `const MicroOp&` gets
/// the micro-op.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "softgpu/interpreter/warp.h"

namespace firebreak::softgpu {

template <std::size_t size>
struct StorageOfSize;
template <>
struct StorageOfSize<1> {
  using Type = std::uint8_t;
};
template <>
struct StorageOfSize<2> {
  using Type = std::uint16_t;
};
template <>
struct StorageOfSize<4> {
  using Type = std::uint32_t;
};
template <>
struct StorageOfSize<8> {
  using Type = std::uint64_t;
};
/// Registers are read and written as unsigned integers only, whatever they hold.
template <class T>
using Storage = typename StorageOfSize<sizeof(T)>::Type;

/// Calls body(lane) for every lane of the mask; a full mask gives a loop that vectorises.
template <class Body>
inline void each_lane(LaneMask mask, Body body) {
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < warp_lanes; ++lane) body(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
}

/// Reads one operand, lane by lane.
template <class T>
class LaneSource {
 public:
  LaneSource(const Warp& warp, const MicroOp& op, std::size_t index)
      : lanes_(warp.pointer<const Storage<T>>(op.operands[index])) {}
  T operator[](int lane) const { return std::bit_cast<T>(lanes_[lane]); }

 private:
  const Storage<T>* lanes_;
};
template <>
class LaneSource<bool> {
 public:
  LaneSource(const Warp& warp, const MicroOp& op, std::size_t index)
      : mask_(warp.predicate(op.operands[index]) ^ (((op.negated >> index) & 1U) != 0 ? all_lanes : 0)) {}
  bool operator[](int lane) const { return ((mask_ >> lane) & 1U) != 0; }

 private:
  LaneMask mask_;
};

/// A handler and the widths of its operands in bits (1: predicate), the destination first.
struct Selected {
  Execute execute = nullptr;
  std::array<std::uint8_t, 5> widths{};
  std::uint8_t count = 0;
  explicit operator bool() const { return execute != nullptr; }
};

template <class T>
inline constexpr std::uint8_t lane_width = std::is_same_v<T, bool> ? 1 : sizeof(T) * 8;

inline constexpr std::array<LaneMask, warp_lanes> lane_bit = [] {
  std::array<LaneMask, warp_lanes> bits{};
  for (std::size_t lane = 0; lane < bits.size(); ++lane) bits[lane] = LaneMask{1} << lane;
  return bits;
}();

namespace detail {

template <class D, class Compute>
inline void store_lanes(Warp& warp, const MicroOp& op, LaneMask mask, Compute compute) {
  if constexpr (std::is_same_v<D, bool>) {
    LaneMask result = 0;
    if (mask == all_lanes) {
      for (int lane = 0; lane < warp_lanes; ++lane) result |= compute(lane) ? lane_bit[lane] : 0;
    } else {
      for (LaneMask left = mask; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        result |= compute(lane) ? lane_bit[lane] : 0;
      }
    }
    LaneMask& destination = warp.predicate(op.operands[0]);
    destination = (destination & ~mask) | result;
  } else {
    auto* const destination = warp.pointer<Storage<D>>(op.operands[0]);
    each_lane(mask, [=](int lane) { destination[lane] = std::bit_cast<Storage<D>>(compute(lane)); });
  }
}

template <auto function, class Signature>
struct Handler;

template <auto function, class D, class... S>
struct Handler<function, D (*)(S...)> {
  static const MicroOp* execute(Warp& warp, const MicroOp* op) {
    run(warp, *op, std::index_sequence_for<S...>{});
    return op + 1;
  }
  template <std::size_t... index>
  static void run(Warp& warp, const MicroOp& op, std::index_sequence<index...>) {
    run_on(warp, op, LaneSource<S>(warp, op, index + 1)...);
  }
  template <class... Source>
  static void run_on(Warp& warp, const MicroOp& op, Source... source) {
    store_lanes<D>(warp, op, warp.lanes(op), [=](int lane) { return function(source[lane]...); });
  }
  static constexpr Selected selected{&execute, {lane_width<D>, lane_width<S>...}, 1 + sizeof...(S)};
};

template <auto function, class D, class... S>
struct Handler<function, D (*)(const MicroOp&, S...)> {
  static const MicroOp* execute(Warp& warp, const MicroOp* op) {
    run(warp, *op, std::index_sequence_for<S...>{});
    return op + 1;
  }
  template <std::size_t... index>
  static void run(Warp& warp, const MicroOp& op, std::index_sequence<index...>) {
    run_on(warp, op, LaneSource<S>(warp, op, index + 1)...);
  }
  template <class... Source>
  static void run_on(Warp& warp, const MicroOp& op, Source... source) {
    store_lanes<D>(warp, op, warp.lanes(op),
                   [&op, source...](int lane) { return function(op, source[lane]...); });
  }
  static constexpr Selected selected{&execute, {lane_width<D>, lane_width<S>...}, 1 + sizeof...(S)};
};

}  // namespace detail

/// The handler that applies `function` to every lane.
template <auto function>
constexpr Selected lane_operation() {
  return detail::Handler<function, decltype(function)>::selected;
}

/// Calls f with a value of the C++ type of a PTX integer type of 16, 32 or 64 bits; bits count as unsigned.
template <class F>
Selected with_integer(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::B16:
    case ptx::Type::U16:
      return f(std::uint16_t{});
    case ptx::Type::S16:
      return f(std::int16_t{});
    case ptx::Type::B32:
    case ptx::Type::U32:
      return f(std::uint32_t{});
    case ptx::Type::S32:
      return f(std::int32_t{});
    case ptx::Type::B64:
    case ptx::Type::U64:
      return f(std::uint64_t{});
    case ptx::Type::S64:
      return f(std::int64_t{});
    default:
      return {};
  }
}

/// The same for any type of 16, 32 or 64 bits, as unsigned integers of that width.
template <class F>
Selected with_bits(ptx::Type type, F f) {
  switch (ptx::size_bytes(type)) {
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
