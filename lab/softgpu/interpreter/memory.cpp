// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/memory.h"

#include <algorithm>

namespace firebreak::softgpu {

namespace {

template <class T, class Register>
void load(Warp& warp, const MicroOp& op, LaneMask mask, const LaneHosts& hosts) {
  for (std::size_t element = 0; element < op.arity; ++element) {
    auto* const destination = warp.pointer<Register>(op.operands[element]);
    for (LaneMask left = mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      const auto value = load_host<std::make_unsigned_t<T>>(hosts[lane] + element * sizeof(T));
      destination[lane] = static_cast<Register>(static_cast<T>(value));
    }
  }
}

template <class T, class Register>
void store(Warp& warp, const MicroOp& op, LaneMask mask, const LaneHosts& hosts) {
  for (std::size_t element = 0; element < op.arity; ++element) {
    const auto* const source = warp.pointer<const Register>(op.operands[element]);
    for (LaneMask left = mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      store_host<T>(hosts[lane] + element * sizeof(T), static_cast<T>(source[lane]));
    }
  }
}

template <class T>
Transfer load_into(std::uint32_t register_bits) {
  if (register_bits < sizeof(T) * 8) return nullptr;
  if constexpr (sizeof(T) <= 1) {
    if (register_bits == 8) return &load<T, std::uint8_t>;
  }
  if constexpr (sizeof(T) <= 2) {
    if (register_bits == 16) return &load<T, std::uint16_t>;
  }
  if constexpr (sizeof(T) <= 4) {
    if (register_bits == 32) return &load<T, std::uint32_t>;
  }
  return &load<T, std::uint64_t>;
}

template <class T>
Transfer store_from(std::uint32_t register_bits) {
  if (register_bits < sizeof(T) * 8) return nullptr;
  switch (register_bits) {
    case 8:
      return &store<T, std::uint8_t>;
    case 16:
      return &store<T, std::uint16_t>;
    case 32:
      return &store<T, std::uint32_t>;
    default:
      return &store<T, std::uint64_t>;
  }
}

std::uint64_t convert_address(const MicroOp& op, std::uint64_t address) { return address + op.immediate; }

bool is_in_space(const MicroOp& op, std::uint64_t address) {
  if (op.immediate != 0) return in_window(address, op.immediate);
  return !in_window(address, shared_window_base) && !in_window(address, local_window_base) &&
         !in_window(address, parameter_window_base);
}

template <class Register>
const MicroOp* local_address(Warp& warp, const MicroOp* op) {
  auto* const destination = warp.pointer<Register>(op->operands[0]);
  const auto address = static_cast<Register>(op->immediate + warp.frame->local_base);
  each_lane(warp.lanes(*op), [=](int lane) { destination[lane] = address; });
  return op + 1;
}

/// Copies words; those from `wanted` on are zero.
void copy_lane(std::byte* to, const std::byte* from, std::size_t size, std::size_t wanted) {
  for (std::size_t at = 0; at < size; at += 4) {
    std::uint32_t word = from != nullptr && at < wanted ? load_host<std::uint32_t>(from + at) : 0;
    if (at < wanted && wanted - at < 4) word &= (1U << ((wanted - at) * 8)) - 1U;
    store_host<std::uint32_t>(to + at, word);
  }
}

}  // namespace

Transfer select_load(ptx::Type type, std::uint32_t register_bits) {
  switch (type) {
    case ptx::Type::S8:
      return load_into<std::int8_t>(register_bits);
    case ptx::Type::S16:
      return load_into<std::int16_t>(register_bits);
    case ptx::Type::S32:
      return load_into<std::int32_t>(register_bits);
    default:
      break;
  }
  switch (ptx::size_bytes(type)) {
    case 1:
      return load_into<std::uint8_t>(register_bits);
    case 2:
      return load_into<std::uint16_t>(register_bits);
    case 4:
      return load_into<std::uint32_t>(register_bits);
    case 8:
      return load_into<std::uint64_t>(register_bits);
    default:
      return nullptr;
  }
}

Transfer select_store(ptx::Type type, std::uint32_t register_bits) {
  switch (ptx::size_bytes(type)) {
    case 1:
      return store_from<std::uint8_t>(register_bits);
    case 2:
      return store_from<std::uint16_t>(register_bits);
    case 4:
      return store_from<std::uint32_t>(register_bits);
    case 8:
      return store_from<std::uint64_t>(register_bits);
    default:
      return nullptr;
  }
}

const MicroOp* execute_copy_async(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  const std::size_t size = std::size_t{1} << op->access_log2;
  LaneHosts to{};
  LaneHosts from{};
  MicroOp source = *op;  // its offset and address width are the second address's
  source.immediate = *warp.pointer<const std::uint64_t>(op->operands[6]);
  source.flags = static_cast<std::uint16_t>(op->has(second_narrow_address) ? narrow_address : 0);
  LaneMask reading = mask;
  std::array<std::size_t, warp_lanes> wanted;
  wanted.fill(size);
  if (op->detail != 0) {
    const auto* const sizes = warp.pointer<const std::uint32_t>(op->operands[7]);
    for (int lane = 0; lane < warp_lanes; ++lane) {
      wanted[static_cast<std::size_t>(lane)] = std::min<std::size_t>(sizes[lane], size);
      if (sizes[lane] == 0) reading &= ~(LaneMask{1} << lane);
    }
  }
  if (!find_lanes<Space::Shared>(warp, op, mask, LaneAddresses(warp, *op), size, GpuAccess::Store, to))
    return nullptr;
  const LaneAddresses sources(warp, source, 5);
  warp.launch->memory.refresh();
  if (!find_lanes<Space::Global>(warp, op, reading, sources, size, GpuAccess::Load, from)) return nullptr;
  if (warp.launch->is_watched) [[unlikely]] {
    if (observe_lanes(warp, op, reading, sources, size, GpuAccess::Load) != reading) return nullptr;
  }
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    copy_lane(to[lane], from[lane], size, wanted[lane]);
  }
  return op + 1;
}

Selected select_convert_address() { return lane_operation<&convert_address>(); }
Selected select_is_in_space() { return lane_operation<&is_in_space>(); }
Selected select_local_address(std::uint32_t register_bits) {
  if (register_bits == 32) return {&local_address<std::uint32_t>, {32}, 1};
  return {&local_address<std::uint64_t>, {64}, 1};
}

}  // namespace firebreak::softgpu
