// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/control_flow.h"

#include <atomic>
#include <chrono>

#include "ground/base/clock.h"
#include "softgpu/interpreter/generic_windows.h"
#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

namespace {

/// True when `op` acts on the whole running group. Else the group was split (or no lane is concerned), and
/// `next` is what to return.
bool whole_group(Warp& warp, const MicroOp* op, const MicroOp*& next) {
  const LaneMask lanes = warp.lanes(*op);
  if (lanes == warp.active) return true;
  next = lanes == 0 ? op + 1 : warp.split(lanes, op, op + 1);
  return false;
}

/// The lanes whose value equals that of the first lane.
LaneMask agreeing(const std::uint64_t* values, LaneMask lanes) {
  const std::uint64_t first = values[std::countr_zero(lanes)];
  LaneMask same = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (values[lane] == first) same |= LaneMask{1} << lane;
  }
  return same;
}

}  // namespace

const MicroOp* execute_branch(Warp& warp, const MicroOp* op) {
  const LaneMask taken = warp.lanes(*op);
  if (taken == 0) return op + 1;
  const MicroOp* const target = op + op->jump;
  if (taken != warp.active) return warp.split(taken, target, op + 1);
  return warp.diverged ? warp.reschedule(target) : target;
}

const MicroOp* execute_indexed_branch(Warp& warp, const MicroOp* op) {
  const MicroOp* next = nullptr;
  if (!whole_group(warp, op, next)) return next;
  const FunctionCode& function = *warp.frame->function;
  const std::vector<std::int32_t>& table = function.branch_tables[static_cast<std::size_t>(op->jump)];
  const auto* const indices = warp.pointer<const std::uint32_t>(op->operands[1]);
  const std::uint32_t first = indices[std::countr_zero(warp.active)];
  LaneMask same = 0;
  for (LaneMask left = warp.active; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (indices[lane] == first) same |= LaneMask{1} << lane;
  }
  if (first >= table.size()) return warp.raise(op, GpuFaultKind::InstructionFetch, GpuAccess::Fetch, first);
  const MicroOp* const target = function.code.data() + table[first];
  if (same != warp.active) return warp.split(same, target, op);
  return warp.diverged ? warp.reschedule(target) : target;
}

const MicroOp* execute_call(Warp& warp, const MicroOp* op) {
  const MicroOp* next = nullptr;
  if (!whole_group(warp, op, next)) return next;
  const CallSite& site = warp.frame->function->call_sites[static_cast<std::size_t>(op->jump)];
  return warp.call(op, site, warp.launch->module->functions[site.function_index]);
}

const MicroOp* execute_indirect_call(Warp& warp, const MicroOp* op) {
  const MicroOp* next = nullptr;
  if (!whole_group(warp, op, next)) return next;
  const CallSite& site = warp.frame->function->call_sites[static_cast<std::size_t>(op->jump)];
  const auto* const targets = warp.pointer<const std::uint64_t>(site.target);
  const LaneMask same = agreeing(targets, warp.active);
  if (same != warp.active) {
    warp.split(same, op, op);  // the others call on their own turn
    warp.select(warp.groups[warp.current]);
    warp.diverged = true;
  }
  const std::uint64_t target = targets[std::countr_zero(same)];
  const std::vector<FunctionCode>& functions = warp.launch->module->functions;
  const std::uint64_t index = (target - code_base) / code_address_step;
  const bool is_code = target >= code_base && (target - code_base) % code_address_step == 0 &&
                       index < functions.size() && !functions[index].code.empty();
  if (!is_code) {
    // The GPU executes whatever is mapped: data are instructions, of which no more than the first is tried.
    warp.launch->memory.refresh();
    const bool is_data = warp.launch->memory.find(target, 1, false) != nullptr;
    const auto kind = is_data ? GpuFaultKind::IllegalInstruction : GpuFaultKind::InstructionFetch;
    return warp.raise(op, kind, GpuAccess::Fetch, target);
  }
  return warp.call(op, site, functions[index]);
}

const MicroOp* execute_return(Warp& warp, const MicroOp* op) {
  const MicroOp* next = nullptr;
  return whole_group(warp, op, next) ? warp.return_group() : next;
}

const MicroOp* execute_exit(Warp& warp, const MicroOp* op) {
  const MicroOp* next = nullptr;
  return whole_group(warp, op, next) ? warp.exit_group() : next;
}

const MicroOp* execute_trap(Warp& warp, const MicroOp* op) {
  if (warp.lanes(*op) == 0) return op + 1;
  return warp.raise(op, static_cast<GpuFaultKind>(op->detail), GpuAccess::None, 0);
}

const MicroOp* execute_nothing(Warp&, const MicroOp* op) { return op + 1; }

const MicroOp* execute_yield(Warp& warp, const MicroOp* op) {
  warp.rotate = true;
  return warp.reschedule(op + 1);
}

const MicroOp* execute_fence(Warp& warp, const MicroOp* op) {
  // A locked read-modify-write orders earlier stores before later loads; thread sanitizer knows it, unlike a
  // fence.
  std::atomic_ref<std::uint64_t>(warp.launch->fence).fetch_add(1, std::memory_order_seq_cst);
  return op + 1;
}

const MicroOp* execute_active_mask(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  auto* const destination = warp.pointer<std::uint32_t>(op->operands[0]);
  each_lane(mask, [=](int lane) { destination[lane] = mask; });
  return op + 1;
}

namespace {

template <class Register, int shift>
const MicroOp* read_clock(Warp& warp, const MicroOp* op) {
  const auto now_ns = static_cast<std::uint64_t>(to_ns(SystemClock().now()));
  const auto value = static_cast<Register>(now_ns >> shift);
  auto* const destination = warp.pointer<Register>(op->operands[0]);
  each_lane(warp.lanes(*op), [=](int lane) { destination[lane] = value; });
  return op + 1;
}

}  // namespace

ClockOperation select_clock(ptx::SpecialRegister which) {
  switch (which) {
    case ptx::SpecialRegister::Clock:
    case ptx::SpecialRegister::GlobaltimerLo:
      return {&read_clock<std::uint32_t, 0>, 32};
    case ptx::SpecialRegister::ClockHi:
    case ptx::SpecialRegister::GlobaltimerHi:
      return {&read_clock<std::uint32_t, 32>, 32};
    case ptx::SpecialRegister::Clock64:
    case ptx::SpecialRegister::Globaltimer:
      return {&read_clock<std::uint64_t, 0>, 64};
    default:
      return {};
  }
}

}  // namespace firebreak::softgpu
