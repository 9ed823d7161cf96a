// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/warp.h"

#include <cstring>
#include <new>

#include "softgpu/interpreter/interleaved.h"
#include "softgpu/interpreter/warp_sync.h"

namespace firebreak::softgpu {

namespace {

constexpr std::size_t frame_alignment_bytes = 64;
/// A call costs this much of the stack limit beyond the callee's own .local variables: at the least a return
/// address and what a compiled function would save.
constexpr std::uint32_t call_cost_bytes = 16;

std::uint32_t frame_cost(const FunctionCode& function) {
  return (function.local_bytes + call_cost_bytes + 15U) & ~15U;
}

}  // namespace

Frame* Warp::acquire_frame(const FunctionCode& function) {
  if (free_frames.empty()) {
    frames.push_back(std::make_unique<Frame>());
    free_frames.push_back(frames.back().get());
  }
  Frame* const made = free_frames.back();
  free_frames.pop_back();
  const std::size_t needed = function.frame_bytes + frame_alignment_bytes;
  if (made->capacity_bytes < needed) {
    made->storage = std::make_unique<std::byte[]>(needed);
    made->capacity_bytes = needed;
    const auto address = reinterpret_cast<std::uintptr_t>(made->storage.get());
    made->memory = made->storage.get() + (frame_alignment_bytes - address % frame_alignment_bytes);
  }
  made->function = &function;
  return made;
}

void Warp::start(const FunctionCode& function, LaneMask lanes) {
  free_frames.clear();
  for (const auto& any : frames) free_frames.push_back(any.get());
  Frame* const entry = acquire_frame(function);
  entry->parent = nullptr;
  entry->site = nullptr;
  entry->return_to = nullptr;
  entry->depth = 0;
  entry->local_base = 0;
  entry->local_top = (function.local_bytes + 15U) & ~15U;
  entry->lanes = lanes;
  existing = lanes;
  live = lanes;
  rotate = false;
  group_count = 0;
  add_group({entry, function.code.data(), lanes, Wait::None, 0});
}

void Warp::select(const Group& group) {
  frame = group.frame;
  active = group.lanes;
  bases[static_cast<std::size_t>(OperandBase::Frame)] = frame->memory;
}

void Warp::add_group(const Group& group) { groups[group_count++] = group; }

void Warp::remove_group(std::uint32_t group) {
  groups[group] = groups[--group_count];
  if (current == group_count) current = group;
}

bool Warp::can_run() const {
  for (std::uint32_t i = 0; i < group_count; ++i) {
    if (groups[i].wait == Wait::None) return true;
  }
  return false;
}

void Warp::merge_groups() {
  for (std::uint32_t i = 0; i < group_count; ++i) {
    for (std::uint32_t other = group_count - 1; other > i; --other) {
      Group& into = groups[i];
      const Group& from = groups[other];
      const bool same = into.frame == from.frame && into.next == from.next && into.wait == from.wait;
      if (!same || into.wait == Wait::Barrier) continue;
      into.lanes |= from.lanes;
      remove_group(other);
    }
  }
}

void Warp::pick_any() {
  std::array<std::uint32_t, warp_lanes> candidates;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < group_count; ++i)
    if (groups[i].wait == Wait::None) candidates[count++] = i;
  if (count != 0) current = candidates[launch->turns->below(count)];
}

/// Chooses the group to run: in the deepest frame, then at the smallest address, so that the others are
/// caught up with; after a used-up quantum the next one in turn, so that a spinning group cannot starve the
/// one it waits for.
void Warp::pick() {
  if (group_count > 1) merge_groups();
  diverged = group_count > 1;
  if (diverged && launch->turns != nullptr) return pick_any();
  if (rotate && diverged) {
    rotate = false;
    for (std::uint32_t step = 1; step <= group_count; ++step) {
      const std::uint32_t candidate = (current + step) % group_count;
      if (groups[candidate].wait != Wait::None) continue;
      current = candidate;
      return;
    }
  }
  rotate = false;
  const Group* best = nullptr;
  for (std::uint32_t i = 0; i < group_count; ++i) {
    const Group& group = groups[i];
    if (group.wait != Wait::None) continue;
    const bool deeper = best != nullptr && group.frame->depth > best->frame->depth;
    const bool earlier =
        best != nullptr && group.frame->depth == best->frame->depth && group.next < best->next;
    if (best == nullptr || deeper || earlier) {
      best = &group;
      current = i;
    }
  }
}

/// The running group meets another one of its frame next there.
const MicroOp* Warp::stop_at() const {
  const MicroOp* nearest = nullptr;
  const Group& running = groups[current];
  for (std::uint32_t i = 0; i < group_count; ++i) {
    const Group& group = groups[i];
    if (i == current || group.wait != Wait::None || group.frame != running.frame) continue;
    if (group.next > running.next && (nearest == nullptr || group.next < nearest)) nearest = group.next;
  }
  return nearest;
}

std::uint32_t Warp::run_group(std::uint32_t quantum) {
  select(groups[current]);
  const auto width = static_cast<std::uint64_t>(std::popcount(active));
  const MicroOp* const meeting = diverged ? stop_at() : nullptr;
  const MicroOp* op = groups[current].next;
  std::uint32_t steps = 0;
  do {
    op = op->execute(*this, op);
    ++steps;
  } while (op != meeting && op != nullptr && steps < quantum);
  launch->instructions += steps * width;
  if (op == nullptr) return steps;
  groups[current].next = op;
  rotate = op != meeting;
  return steps;
}

void Warp::run(std::uint32_t quantum) {
  constexpr std::uint32_t diverged_share = 8;
  for (std::uint32_t steps = 0; steps < quantum && live != 0 && !launch->fault;) {
    if (!can_run() && !release_sync(*this)) return;
    pick();
    steps += run_group(diverged ? quantum / diverged_share : quantum);
  }
}

const MicroOp* Warp::split(LaneMask taken, const MicroOp* target, const MicroOp* fall_through) {
  Group& running = groups[current];
  const LaneMask others = running.lanes & ~taken;
  running.lanes = taken;
  running.next = target;
  add_group({running.frame, fall_through, others, Wait::None, 0});
  return nullptr;
}

const MicroOp* Warp::reschedule(const MicroOp* next) {
  groups[current].next = next;
  return nullptr;
}

const MicroOp* Warp::wait(const MicroOp* op, Wait reason, std::uint8_t barrier) {
  Group& running = groups[current];
  running.next = op;
  running.wait = reason;
  running.barrier = barrier;
  return nullptr;
}

const MicroOp* Warp::raise(const MicroOp* op, GpuFaultKind kind, GpuAccess access, std::uint64_t address) {
  const FunctionCode& function = *frame->function;
  GpuFault fault;
  fault.kind = kind;
  fault.access = access;
  fault.address = address;
  fault.kernel = launch->entry->name;
  fault.ptx_line = function.lines[static_cast<std::size_t>(op - function.code.data())];
  launch->fault = std::move(fault);
  return nullptr;
}

void Warp::release_lanes(Frame* from, LaneMask lanes) {
  from->lanes &= ~lanes;
  if (from->lanes == 0) free_frames.push_back(from);
}

const MicroOp* Warp::exit_group() {
  const LaneMask leaving = groups[current].lanes;
  for (Frame* each = groups[current].frame; each != nullptr;) {
    Frame* const parent = each->parent;
    release_lanes(each, leaving);
    each = parent;
  }
  live &= ~leaving;
  remove_group(current);
  release_sync(*this);  // waiting lanes no longer need those that left
  return nullptr;
}

namespace {

/// The bytes a lane's value has at one end of a call.
struct ValuePlace {
  CallValue::Place place;
  OperandReference reference;
  std::uint32_t offset_bytes;
};

std::byte* lane_place(const Warp& warp, const Frame& frame, const ValuePlace& value, int lane,
                      std::uint32_t size_bytes) {
  const auto index = static_cast<std::size_t>(lane);
  if (value.place == CallValue::Place::Parameter) {
    const FunctionCode& function = *frame.function;
    return frame.memory + function.parameter_base + index * function.parameter_stride + value.offset_bytes;
  }
  const bool in_frame = value.reference.base() == static_cast<std::uint32_t>(OperandBase::Frame);
  std::byte* const base = in_frame ? frame.memory : warp.bases[value.reference.base()];
  return base + value.reference.offset() + index * size_bytes;
}

void hand_over(const Warp& warp, const CallValue& value, LaneMask lanes, const Frame& caller,
               const Frame& callee, bool to_callee) {
  const bool of_returns = !to_callee && value.callee == CallValue::Place::Parameter;
  const std::uint32_t callee_offset = value.callee_offset + (of_returns ? callee.function->return_offset : 0);
  const ValuePlace outer{value.caller, value.caller_register, value.caller_offset};
  const ValuePlace inner{value.callee, value.callee_register, callee_offset};
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    std::byte* const outside = lane_place(warp, caller, outer, lane, value.size_bytes);
    std::byte* const inside = lane_place(warp, callee, inner, lane, value.size_bytes);
    std::memcpy(to_callee ? inside : outside, to_callee ? outside : inside, value.size_bytes);
  }
}

}  // namespace

const MicroOp* Warp::call(const MicroOp* op, const CallSite& site, const FunctionCode& callee) {
  Frame* const caller = frame;
  const std::uint32_t top = caller->local_top + frame_cost(callee);
  if (top > launch->local_bytes) return raise(op, GpuFaultKind::StackOverflow, GpuAccess::None, top);
  Frame* const inner = acquire_frame(callee);
  inner->parent = caller;
  inner->site = &site;
  inner->return_to = op + 1;
  inner->depth = caller->depth + 1;
  inner->local_base = caller->local_top;
  inner->local_top = top;
  inner->lanes = active;
  for (const CallValue& value : site.arguments) hand_over(*this, value, active, *caller, *inner, true);
  groups[current].frame = inner;
  groups[current].next = callee.code.data();
  if (diverged) return nullptr;
  select(groups[current]);
  return callee.code.data();
}

const MicroOp* Warp::return_group() {
  Frame* const inner = frame;
  if (inner->parent == nullptr) return exit_group();
  for (const CallValue& value : inner->site->returns)
    hand_over(*this, value, active, *inner->parent, *inner, false);
  const MicroOp* const next = inner->return_to;
  groups[current].frame = inner->parent;
  groups[current].next = next;
  release_lanes(inner, active);
  if (diverged) return nullptr;
  select(groups[current]);
  return next;
}

}  // namespace firebreak::softgpu
