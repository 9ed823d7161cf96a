// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/move.h"

namespace firebreak::softgpu {

namespace {

template <class T>
T same(T a) {
  return a;
}

const MicroOp* move_predicate(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  const LaneMask inverted = (op->negated & 2U) != 0 ? all_lanes : 0;
  LaneMask& destination = warp.predicate(op->operands[0]);
  destination = (destination & ~mask) | ((warp.predicate(op->operands[1]) ^ inverted) & mask);
  return op + 1;
}

template <class Whole, class Part>
const MicroOp* pack(Warp& warp, const MicroOp* op) {
  auto* const destination = warp.pointer<Whole>(op->operands[0]);
  each_lane(warp.lanes(*op), [&](int lane) {
    std::uint64_t whole = 0;
    for (std::size_t part = 0; part < op->arity; ++part) {
      const std::uint64_t value = warp.pointer<const Part>(op->operands[part + 1])[lane];
      whole |= value << (part * sizeof(Part) * 8);
    }
    destination[lane] = static_cast<Whole>(whole);
  });
  return op + 1;
}

template <class Whole, class Part>
const MicroOp* unpack(Warp& warp, const MicroOp* op) {
  const auto* const source = warp.pointer<const Whole>(op->operands[0]);
  each_lane(warp.lanes(*op), [&](int lane) {
    const std::uint64_t whole = source[lane];
    for (std::size_t part = 0; part < op->arity; ++part) {
      warp.pointer<Part>(op->operands[part + 1])[lane] =
          static_cast<Part>(whole >> (part * sizeof(Part) * 8));
    }
  });
  return op + 1;
}

struct Widths {
  std::uint32_t whole_bits;
  std::uint32_t part_bits;
  Execute pack;
  Execute unpack;
};
template <class Whole, class Part>
constexpr Widths widths{sizeof(Whole) * 8, sizeof(Part) * 8, &pack<Whole, Part>, &unpack<Whole, Part>};
constexpr std::array all_widths = {
    widths<std::uint64_t, std::uint32_t>, widths<std::uint64_t, std::uint16_t>,
    widths<std::uint32_t, std::uint16_t>, widths<std::uint64_t, std::uint8_t>,
    widths<std::uint32_t, std::uint8_t>,  widths<std::uint16_t, std::uint8_t>,
};

}  // namespace

Selected select_move(std::uint32_t width_bits) {
  switch (width_bits) {
    case 1:
      return {&move_predicate, {1, 1}, 2};
    case 8:
      return lane_operation<&same<std::uint8_t>>();
    case 16:
      return lane_operation<&same<std::uint16_t>>();
    case 32:
      return lane_operation<&same<std::uint32_t>>();
    case 64:
      return lane_operation<&same<std::uint64_t>>();
    default:
      return {};
  }
}

Execute select_pack(std::uint32_t whole_bits, std::uint32_t part_bits) {
  for (const Widths& each : all_widths) {
    if (each.whole_bits == whole_bits && each.part_bits == part_bits) return each.pack;
  }
  return nullptr;
}

Execute select_unpack(std::uint32_t whole_bits, std::uint32_t part_bits) {
  for (const Widths& each : all_widths) {
    if (each.whole_bits == whole_bits && each.part_bits == part_bits) return each.unpack;
  }
  return nullptr;
}

}  // namespace firebreak::softgpu
