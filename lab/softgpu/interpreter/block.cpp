// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/block.h"

#include <algorithm>
#include <cassert>

namespace firebreak::softgpu {

namespace {

/// Micro-ops a warp runs before the next one's turn.
constexpr std::uint32_t quantum = 4096;

using ptx::SpecialRegister;

void fill_lane_masks(SpecialValues& values) {
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const LaneMask self = LaneMask{1} << lane;
    values[SpecialRegister::Laneid][lane] = lane;
    values[SpecialRegister::LanemaskEq][lane] = self;
    values[SpecialRegister::LanemaskLt][lane] = self - 1;
    values[SpecialRegister::LanemaskLe][lane] = self | (self - 1);
    values[SpecialRegister::LanemaskGe][lane] = ~(self - 1);
    values[SpecialRegister::LanemaskGt][lane] = ~(self | (self - 1));
  }
}

void fill_thread_indices(SpecialValues& values, std::uint32_t warp, Dimensions size) {
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const std::uint32_t thread = warp * warp_lanes + lane;
    values[SpecialRegister::TidX][lane] = thread % size.x;
    values[SpecialRegister::TidY][lane] = thread / size.x % size.y;
    values[SpecialRegister::TidZ][lane] = thread / size.x / size.y;
  }
}

void fill_launch_values(SpecialValues& values, const Launch& request, std::uint32_t warp_total,
                        std::uint32_t shared_bytes) {
  values.fill(SpecialRegister::NtidX, request.block.x);
  values.fill(SpecialRegister::NtidY, request.block.y);
  values.fill(SpecialRegister::NtidZ, request.block.z);
  values.fill(SpecialRegister::NctaidX, request.grid.x);
  values.fill(SpecialRegister::NctaidY, request.grid.y);
  values.fill(SpecialRegister::NctaidZ, request.grid.z);
  values.fill(SpecialRegister::NclusteridX, request.grid.x);
  values.fill(SpecialRegister::NclusteridY, request.grid.y);
  values.fill(SpecialRegister::NclusteridZ, request.grid.z);
  values.fill(SpecialRegister::ClusterNctaidX, 1);
  values.fill(SpecialRegister::ClusterNctaidY, 1);
  values.fill(SpecialRegister::ClusterNctaidZ, 1);
  values.fill(SpecialRegister::ClusterNctarank, 1);
  values.fill(SpecialRegister::Nwarpid, warp_total);
  values.fill(SpecialRegister::Nsmid, 1);
  values.fill(SpecialRegister::DynamicSmemSize, request.dynamic_shared_bytes);
  values.fill(SpecialRegister::TotalSmemSize, shared_bytes);
  values.fill(SpecialRegister::AggrSmemSize, shared_bytes);
}

void fill_block_index(SpecialValues& values, Dimensions index) {
  values.fill(SpecialRegister::CtaidX, index.x);
  values.fill(SpecialRegister::CtaidY, index.y);
  values.fill(SpecialRegister::CtaidZ, index.z);
  values.fill(SpecialRegister::ClusteridX, index.x);
  values.fill(SpecialRegister::ClusteridY, index.y);
  values.fill(SpecialRegister::ClusteridZ, index.z);
}

std::unique_ptr<std::byte[], decltype(&std::free)> zeroed(std::size_t size_bytes) {
  return {static_cast<std::byte*>(std::calloc(std::max<std::size_t>(size_bytes, 1), 1)), &std::free};
}

}  // namespace

Block::Block(LaunchState& launch_state, const Launch& request, std::uint32_t shared_size_bytes)
    : launch(launch_state),
      size(request.block),
      thread_count(request.block.x * request.block.y * request.block.z),
      shared(shared_size_bytes),
      local(zeroed(std::size_t{(thread_count + warp_lanes - 1) / warp_lanes} * warp_lanes *
                   launch.local_bytes)) {
  const std::uint32_t total = (thread_count + warp_lanes - 1) / warp_lanes;
  assert(total >= 1 && total <= most_warps);
  for (std::uint32_t index = 0; index < total; ++index) make_warp(index, request);
}

void Block::make_warp(std::uint32_t index, const Launch& request) {
  auto warp = std::make_unique<Warp>();
  SpecialValues& values = *warp->specials;
  fill_lane_masks(values);
  fill_thread_indices(values, index, size);
  fill_launch_values(values, request, (thread_count + warp_lanes - 1) / warp_lanes,
                     static_cast<std::uint32_t>(shared.size()));
  values.fill(SpecialRegister::Warpid, index);
  warp->block = this;
  warp->launch = &launch;
  warp->index = index;
  warp->shared = shared.data();
  warp->shared_bytes = static_cast<std::uint32_t>(shared.size());
  warp->local = local.get() + std::size_t{index} * warp_lanes * launch.local_bytes;
  const std::uint64_t* const constants = launch.module->constants.data();
  warp->bases[static_cast<std::size_t>(OperandBase::Constants)] =
      reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(constants));
  warp->bases[static_cast<std::size_t>(OperandBase::Specials)] =
      reinterpret_cast<std::byte*>(warp->specials.get());
  warps.push_back(std::move(warp));
}

void Block::start(Dimensions index) {
  std::fill(shared.begin(), shared.end(), std::byte{0});  // This makes a run independent of the block before.
  barriers.fill(Barrier{});
  std::uint32_t left = thread_count;
  for (const auto& warp : warps) {
    const std::uint32_t mine = std::min<std::uint32_t>(left, warp_lanes);
    left -= mine;
    fill_block_index(*warp->specials, index);
    warp->start(*launch.entry, mine == warp_lanes ? all_lanes : (LaneMask{1} << mine) - 1);
  }
}

bool Block::finished() const {
  return std::all_of(warps.begin(), warps.end(), [](const auto& warp) { return warp->finished(); });
}

bool Block::can_run() const {
  return std::any_of(warps.begin(), warps.end(), [](const auto& warp) { return warp->can_run(); });
}

std::uint32_t Block::live_threads() const {
  std::uint32_t count = 0;
  for (const auto& warp : warps) count += static_cast<std::uint32_t>(std::popcount(warp->live));
  return count;
}

bool Block::run_slice() {
  bool progress = false;
  for (const auto& warp : warps) {
    const std::uint64_t before = launch.instructions;
    if (!warp->finished()) warp->run(quantum);
    progress = progress || launch.instructions != before;
    if (launch.fault || launch.attention->load(std::memory_order_relaxed) != 0) return true;
  }
  for (std::uint32_t barrier = 0; barrier < barrier_count; ++barrier) release_if_complete(barrier);
  return progress;
}

namespace {

void write_result(const Warp& warp, const MicroOp& op, LaneMask lanes, const Barrier& barrier) {
  const auto action = static_cast<BarrierAction>(op.detail);
  if (action == BarrierAction::Population) {
    auto* const destination = warp.pointer<std::uint32_t>(op.operands[0]);
    for (; lanes != 0; lanes &= lanes - 1) destination[std::countr_zero(lanes)] = barrier.population;
  } else if (action == BarrierAction::And || action == BarrierAction::Or) {
    const bool result = action == BarrierAction::And ? barrier.all : barrier.any;
    LaneMask& destination = warp.predicate(op.operands[0]);
    destination = result ? destination | lanes : destination & ~lanes;
  }
}

void arrive(Warp& warp, const MicroOp& op, Barrier& barrier) {
  const LaneMask lanes = warp.active;
  const auto action = static_cast<BarrierAction>(op.detail);
  if (op.arity == 2) {
    barrier.expected = warp.pointer<const std::uint32_t>(op.operands[2])[std::countr_zero(lanes)];
  }
  barrier.arrived += static_cast<std::uint32_t>(std::popcount(lanes));
  const std::uint32_t bit = 1U << warp.index;
  if ((barrier.warps & bit) == 0) {
    barrier.absent += warp_lanes - static_cast<std::uint32_t>(std::popcount(warp.live));
    barrier.warps |= bit;
  }
  if (action < BarrierAction::Population) return;
  const LaneMask inverted = ((op.negated >> 3) & 1U) != 0 ? all_lanes : 0;
  const LaneMask yes = (warp.predicate(op.operands[3]) ^ inverted) & lanes;
  barrier.population += static_cast<std::uint32_t>(std::popcount(yes));
  barrier.all = barrier.all && yes == lanes;
  barrier.any = barrier.any || yes != 0;
}

}  // namespace

void Block::release_if_complete(std::uint32_t index) {
  Barrier& barrier = barriers[index];
  if (barrier.arrived == 0) return;
  const bool complete = barrier.expected != 0 ? barrier.arrived + barrier.absent >= barrier.expected
                                              : barrier.arrived >= live_threads();
  if (!complete) return;
  for (const auto& warp : warps) {
    for (std::uint32_t i = 0; i < warp->group_count; ++i) {
      Group& group = warp->groups[i];
      if (group.wait != Wait::Barrier || group.barrier != index) continue;
      warp->select(group);
      write_result(*warp, *group.next, group.lanes, barrier);
      group.wait = Wait::None;
      ++group.next;
    }
  }
  barrier = Barrier{};
}

const MicroOp* execute_barrier(Warp& warp, const MicroOp* op) {
  const LaneMask lanes = warp.lanes(*op);
  if (lanes == 0) return op + 1;
  if (lanes != warp.active) return warp.split(lanes, op, op + 1);
  const std::uint32_t number = warp.pointer<const std::uint32_t>(op->operands[1])[std::countr_zero(lanes)];
  const std::uint32_t index = number % barrier_count;  // assumed: the field has no more bits
  arrive(warp, *op, warp.block->barriers[index]);
  if (static_cast<BarrierAction>(op->detail) == BarrierAction::Arrive) {
    warp.reschedule(op + 1);
  } else {
    warp.wait(op, Wait::Barrier, static_cast<std::uint8_t>(index));
  }
  warp.block->release_if_complete(index);
  return nullptr;
}

}  // namespace firebreak::softgpu
