// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/memory_access.h"

#include "softgpu/interpreter/interleaved.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu {

namespace {

/// A generic address is resolved here, and `address` becomes the offset in its window.
Space resolve(Space space, std::uint64_t& address) {
  if (space != Space::Generic) return space;
  if (in_window(address, shared_window_base)) {
    address -= shared_window_base;
    return Space::Shared;
  }
  if (in_window(address, local_window_base)) {
    address -= local_window_base;
    return Space::Local;
  }
  return Space::Global;
}

GpuFaultKind reason(const Warp& warp, Space space, std::uint64_t address, std::uint64_t size,
                    GpuAccess access) {
  if ((address & (size - 1)) != 0) return GpuFaultKind::MisalignedAddress;
  switch (space) {
    case Space::Shared:
      return GpuFaultKind::SharedOutOfBounds;
    case Space::Local:
      return GpuFaultKind::LocalOutOfBounds;
    case Space::EntryParameter:
    case Space::FrameParameter:
      return access == GpuAccess::Load ? GpuFaultKind::UnmappedAccess : GpuFaultKind::ReadOnlyViolation;
    default:
      break;
  }
  if (in_window(address, parameter_window_base) && access != GpuAccess::Load)
    return GpuFaultKind::ReadOnlyViolation;
  return warp.launch->memory.reason(address, size);
}

}  // namespace

std::byte* find_in_windows(Warp& warp, int lane, std::uint64_t address, std::uint64_t size, bool write) {
  if (in_window(address, shared_window_base)) {
    return find_host<Space::Shared>(warp, lane, address - shared_window_base, size, write);
  }
  if (in_window(address, local_window_base)) return find_local(warp, lane, address - local_window_base, size);
  if (in_window(address, parameter_window_base)) {
    return find_host<Space::EntryParameter>(warp, lane, address - parameter_window_base, size, write);
  }
  return nullptr;
}

void raise_access(Warp& warp, const MicroOp* op, Space space, std::uint64_t address, std::uint64_t size,
                  GpuAccess access) {
  space = resolve(space, address);
  warp.raise(op, reason(warp, space, address, size, access), access, address);
}

std::byte* handle_fault(Warp& warp, const MicroOp* op, Space space, int lane, std::uint64_t address,
                        GpuAccess access) {
  const std::uint64_t size = std::uint64_t{1} << op->access_log2;
  const bool is_aligned = (address & (size - 1)) == 0;
  std::byte* host = nullptr;
  if (std::uint64_t offset = address; is_aligned && resolve(space, offset) == Space::Global)
    host = warp.launch->memory.handle_fault(address, size, access, lane);
  if (host == nullptr) raise_access(warp, op, space, address, size, access);
  return host;
}

LaneMask observe_lanes(Warp& warp, const MicroOp* op, LaneMask mask, const LaneAddresses& addresses,
                       std::uint64_t size, GpuAccess access) {
  if (warp.launch->observer == nullptr) return mask;
  const FunctionCode& function = *warp.frame->function;
  ObservedAccess seen;
  seen.size_bytes = static_cast<std::uint32_t>(size);
  seen.access = access;
  seen.ptx_line = function.lines[static_cast<std::size_t>(op - function.code.data())];
  LaneMask done = 0;
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    seen.address = addresses[lane];
    seen.thread =
        warp.launch->first_thread + std::uint64_t{warp.index} * warp_lanes + static_cast<unsigned>(lane);
    const bool is_global = seen.address >> 63 == 0;  // The address is not in a window.
    if (is_global && !warp.launch->observer->observe(seen)) {
      warp.launch->is_stopped_by_observer = true;
      warp.raise(op, GpuFaultKind::Breakpoint, access, seen.address);
      return done;
    }
    done |= LaneMask{1} << lane;
  }
  return done;
}

const MicroOp* execute_watched(Warp& warp, const MicroOp* op, LaneMask mask, const LaneHosts& hosts,
                               GpuAccess access) {
  const LaneMask now = warp.launch->turns == nullptr ? mask : warp.launch->turns->some_of(mask);
  const LaneAddresses addresses(warp, *op);
  const LaneMask seen = observe_lanes(warp, op, now, addresses, std::uint64_t{1} << op->access_log2, access);
  op->transfer(warp, *op, seen, hosts);
  if (seen != now) return nullptr;
  return now == mask ? op + 1 : warp.split(warp.active & ~(mask & ~now), op + 1, op);
}

}  // namespace firebreak::softgpu
