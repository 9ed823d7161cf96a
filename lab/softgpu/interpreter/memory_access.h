// SPDX-License-Identifier: Apache-2.0
/// This goes from the addresses of a warp's lanes to host memory and checks every one. The order of the
/// checks is the hardware's: alignment, then the window or the canonical form, then the page tables.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "softgpu/interpreter/generic_windows.h"
#include "softgpu/interpreter/lane_operation.h"
#include "softgpu/interpreter/warp.h"

namespace firebreak::softgpu {

/// These are the places where a memory instruction looks. Constant memory is global memory that the module
/// filled; an H100 lets a load from beyond it pass without a word.
enum class Space : std::uint8_t { Global, Constant, Shared, Local, EntryParameter, FrameParameter, Generic };

/// Memory instructions keep values in operands 0 to 3 and the address here.
inline constexpr std::size_t address_operand = 4;

/// The lanes' addresses: a register, or a constant, plus an offset.
class LaneAddresses {
 public:
  LaneAddresses(const Warp& warp, const MicroOp& op, std::size_t operand = address_operand)
      : offset_(op.immediate + (op.has(frame_relative) ? warp.frame->local_base : 0U)) {
    if (op.has(narrow_address)) {
      narrow_ = warp.pointer<const std::uint32_t>(op.operands[operand]);
    } else {
      wide_ = warp.pointer<const std::uint64_t>(op.operands[operand]);
    }
  }
  std::uint64_t operator[](int lane) const {
    return (narrow_ != nullptr ? narrow_[lane] : wide_[lane]) + offset_;
  }

 private:
  const std::uint64_t* wide_ = nullptr;
  const std::uint32_t* narrow_ = nullptr;
  std::uint64_t offset_;
};

inline std::byte* find_offset(std::byte* base, std::uint64_t limit, std::uint64_t address,
                              std::uint64_t size) {
  return address < limit && size <= limit - address ? base + address : nullptr;
}
inline std::byte* find_local(const Warp& warp, int lane, std::uint64_t address, std::uint64_t size) {
  const std::uint64_t each = warp.launch->local_bytes;
  return find_offset(warp.local + static_cast<std::uint64_t>(lane) * each, each, address, size);
}
/// A load reads zeros where no constant is. Only loads get there.
inline std::byte* find_constant(const Warp& warp, std::uint64_t address, std::uint64_t size) {
  alignas(64) static constexpr std::array<std::byte, 64> nothing{};
  std::byte* const found = warp.launch->memory.find(address, size, false);
  return found != nullptr ? found : const_cast<std::byte*>(nothing.data());
}
std::byte* find_in_windows(Warp& warp, int lane, std::uint64_t address, std::uint64_t size, bool write);

template <Space space>
std::byte* find_host(Warp& warp, int lane, std::uint64_t address, std::uint64_t size, bool write) {
  if constexpr (space == Space::Global) return warp.launch->memory.find(address, size, write);
  if constexpr (space == Space::Constant) return write ? nullptr : find_constant(warp, address, size);
  if constexpr (space == Space::Shared) return find_offset(warp.shared, warp.shared_bytes, address, size);
  if constexpr (space == Space::Local) return find_local(warp, lane, address, size);
  if constexpr (space == Space::EntryParameter) {
    std::vector<std::byte>& parameters = warp.launch->parameters;
    return write ? nullptr : find_offset(parameters.data(), parameters.size(), address, size);
  }
  if constexpr (space == Space::FrameParameter) {
    const FunctionCode& function = *warp.frame->function;
    std::byte* const base = warp.frame->memory + function.parameter_base;
    return find_offset(base + static_cast<std::uint64_t>(lane) * function.parameter_stride,
                       function.parameter_stride, address, size);
  }
  if constexpr (space == Space::Generic) {
    if (address >> 63 != 0) return find_in_windows(warp, lane, address, size, write);
    return warp.launch->memory.find(address, size, write);
  }
}

/// Records the fault of an access that find_host refused or whose address is not a multiple of its size.
void raise_access(Warp& warp, const MicroOp* op, Space space, std::uint64_t address, std::uint64_t size,
                  GpuAccess access);

/// The same for an access that may be a page fault: memory all the same, once that is handled, or null and a
/// recorded fault.
[[gnu::cold]] std::byte* handle_fault(Warp& warp, const MicroOp* op, Space space, int lane,
                                      std::uint64_t address, GpuAccess access);

/// Fills `hosts` for every lane of the mask; false after a fault.
template <Space space>
bool find_lanes(Warp& warp, const MicroOp* op, LaneMask mask, const LaneAddresses& addresses,
                std::uint64_t size, GpuAccess access, LaneHosts& hosts) {
  const bool write = access != GpuAccess::Load;
  if constexpr (space == Space::Global || space == Space::Constant || space == Space::Generic)
    warp.launch->memory.refresh();
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = addresses[lane];
    std::byte* host = nullptr;
    if ((address & (size - 1)) == 0) host = find_host<space>(warp, lane, address, size, write);
    if (host == nullptr) [[unlikely]] {
      if constexpr (space == Space::Global || space == Space::Generic) {
        host = handle_fault(warp, op, space, lane, address, access);
      } else {
        raise_access(warp, op, space, address, size, access);
      }
      if (host == nullptr) return false;
    }
    hosts[static_cast<std::size_t>(lane)] = host;
  }
  return true;
}

/// Tells the observer, if there is one, of the lanes' accesses to global memory; the lanes before the one
/// that it stops at.
[[gnu::cold]] LaneMask observe_lanes(Warp& warp, const MicroOp* op, LaneMask mask,
                                     const LaneAddresses& addresses, std::uint64_t size, GpuAccess access);

/// The transfer of lanes that are watched. Where lanes take turns some may do it later.
[[gnu::cold]] const MicroOp* execute_watched(Warp& warp, const MicroOp* op, LaneMask mask,
                                             const LaneHosts& hosts, GpuAccess access);

/// A memory instruction: all lanes' addresses first, then the transfer.
template <Space space, GpuAccess access>
const MicroOp* execute_access(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  LaneHosts hosts{};
  const std::uint64_t size = std::uint64_t{1} << op->access_log2;
  if (!find_lanes<space>(warp, op, mask, LaneAddresses(warp, *op), size, access, hosts)) return nullptr;
  if constexpr (space == Space::Global || space == Space::Generic || space == Space::Constant) {
    if (warp.launch->is_watched) [[unlikely]]
      return execute_watched(warp, op, mask, hosts, access);
  }
  op->transfer(warp, *op, mask, hosts);
  return op + 1;
}

template <GpuAccess access>
Execute select_access(Space space) {
  switch (space) {
    case Space::Global:
      return &execute_access<Space::Global, access>;
    case Space::Constant:
      return &execute_access<Space::Constant, access>;
    case Space::Shared:
      return &execute_access<Space::Shared, access>;
    case Space::Local:
      return &execute_access<Space::Local, access>;
    case Space::EntryParameter:
      return &execute_access<Space::EntryParameter, access>;
    case Space::FrameParameter:
      return &execute_access<Space::FrameParameter, access>;
    case Space::Generic:
      return &execute_access<Space::Generic, access>;
  }
  return nullptr;
}

/// Host memory may be shared with other threads and processes, so it is only ever touched by atomic accesses;
/// acquire and release cost nothing on x86 and make every PTX ordering strong enough.
template <class T>
T load_host(const std::byte* host) {
  return __atomic_load_n(reinterpret_cast<const T*>(host), __ATOMIC_ACQUIRE);
}
template <class T>
void store_host(std::byte* host, T value) {
  __atomic_store_n(reinterpret_cast<T*>(host), value, __ATOMIC_RELEASE);
}

}  // namespace firebreak::softgpu
