// SPDX-License-Identifier: Apache-2.0
/// The state of one warp: call frames, groups of converged lanes, and what handlers may do to them.
///
/// A warp is a set of groups. A group is a set of lanes at one micro-op of one call frame. One group runs
/// until it diverges, waits or has used its quantum; groups at the same place merge. Lanes that have exited
/// are in no group.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/interpreter/gpu_fault.h"
#include "softgpu/interpreter/memory_port.h"
#include "softgpu/interpreter/micro_op.h"
#include "softgpu/interpreter/specials.h"

namespace firebreak::softgpu {

struct Block;
class AccessObserver;
class Turns;

/// One activation of a function, for the lanes that made the call together.
struct Frame {
  const FunctionCode* function = nullptr;
  Frame* parent = nullptr;
  const CallSite* site = nullptr;
  const MicroOp* return_to = nullptr;
  std::byte* memory = nullptr;
  std::uint32_t depth = 0;
  std::uint32_t local_base = 0;  ///< The function's .local variables start here in a thread's local memory.
  std::uint32_t local_top = 0;   ///< A callee's start here.
  LaneMask lanes = 0;            ///< These lanes have not returned or exited.

  std::unique_ptr<std::byte[]> storage;
  std::size_t capacity_bytes = 0;
};

enum class Wait : std::uint8_t { None, Sync, Barrier };

struct Group {
  Frame* frame = nullptr;
  const MicroOp* next = nullptr;  ///< The lane waits in this instruction.
  LaneMask lanes = 0;
  Wait wait = Wait::None;
  std::uint8_t barrier = 0;  ///< This is the barrier, for Wait::Barrier.
};

/// Lanes bring these to a warp-wide instruction (shfl.sync, vote.sync...), by lane.
struct Exchange {
  std::array<LaneMask, warp_lanes> members{};  ///< the membermask each lane named
  std::array<std::uint64_t, warp_lanes> value{};
  std::array<std::uint32_t, warp_lanes> source{};  ///< shfl: lane or delta
  std::array<std::uint32_t, warp_lanes> clamp{};   ///< shfl: segment mask and clamp
  LaneMask yes = 0;                                ///< vote: the predicates
  LaneMask arrived = 0;                            ///< lanes whose values are there
};

/// All warps of a launch share this.
struct LaunchState {
  LaunchState(const ModuleCode& code, const FunctionCode& function, const AddressSpace& space)
      : module(&code), entry(&function), memory(space) {}

  const ModuleCode* module;
  const FunctionCode* entry;
  MemoryPort memory;
  std::vector<std::byte> parameters;  ///< the entry's, packed
  std::uint32_t local_bytes = 0;      ///< local memory of one thread
  std::uint64_t instructions = 0;     ///< executed by all threads so far
  std::uint64_t fence = 0;            ///< Fences write this.
  std::optional<GpuFault> fault;
  const std::atomic<std::uint32_t>* attention = nullptr;  ///< A value that is not zero asks to come back
                                                          ///< soon.
  AccessObserver* observer = nullptr;
  Turns* turns = nullptr;               ///< This decides who takes turns with whom; with null nobody does
                                        ///< before they have to.
  bool is_watched = false;              ///< one of these two is there
  std::uint64_t first_thread = 0;       ///< The block that runs has this number, for the observer.
  bool is_stopped_by_observer = false;  ///< In that case `fault` is set, too, and means nothing.
};

struct Warp {
  // Every handler uses these: they are kept together, and first.
  std::array<std::byte*, 3> bases{};  ///< by OperandBase
  LaneMask active = 0;                ///< lanes of the group that runs
  bool diverged = false;              ///< There is more than one group.
  Frame* frame = nullptr;             ///< of the group that runs
  Block* block = nullptr;
  LaunchState* launch = nullptr;
  std::byte* shared = nullptr;
  std::uint32_t shared_bytes = 0;
  std::byte* local = nullptr;  ///< Lane 0's memory starts here; it is launch->local_bytes from lane to lane.

  LaneMask existing = 0;  ///< lanes the block has threads for
  LaneMask live = 0;      ///< These lanes of them have not exited.
  std::uint32_t index = 0;
  std::array<Group, warp_lanes> groups;
  std::uint32_t group_count = 0;
  std::uint32_t current = 0;  ///< the group that runs
  bool rotate = false;        ///< the group that ran used up its quantum: let another one run
  Exchange exchange;          ///< of waiting lanes
  std::unique_ptr<SpecialValues> specials = std::make_unique<SpecialValues>();
  std::vector<std::unique_ptr<Frame>> frames;  ///< All that were ever made stay here for reuse.
  std::vector<Frame*> free_frames;

  template <class T>
  T* pointer(OperandReference reference) const {
    return reinterpret_cast<T*>(bases[reference.base()] + reference.offset());
  }
  LaneMask& predicate(OperandReference reference) const { return *pointer<LaneMask>(reference); }
  /// The lanes that `op` is executed for.
  LaneMask lanes(const MicroOp& op) const {
    if (!op.guarded) return active;
    return active & (predicate(op.guard) ^ op.guard_invert);
  }

  /// Puts the warp at the first instruction of `function`.
  void start(const FunctionCode& function, LaneMask lanes);
  bool finished() const { return live == 0; }
  bool can_run() const;
  /// Runs for about `quantum` micro-ops, or until every lane waits or has exited, or a fault.
  void run(std::uint32_t quantum);

  // Handlers call these. Each changes the groups; the handler then returns null.
  /// `taken` lanes of the running group go to `target`, the others to `fall_through`.
  const MicroOp* split(LaneMask taken, const MicroOp* target, const MicroOp* fall_through);
  /// The running group goes on at `next`, after the scheduler had a look.
  const MicroOp* reschedule(const MicroOp* next);
  /// The running group waits in `op`.
  const MicroOp* wait(const MicroOp* op, Wait reason, std::uint8_t barrier = 0);
  const MicroOp* raise(const MicroOp* op, GpuFaultKind kind, GpuAccess access, std::uint64_t address);
  const MicroOp* exit_group();
  const MicroOp* call(const MicroOp* op, const CallSite& site, const FunctionCode& callee);
  const MicroOp* return_group();

  /// Makes `group` the one whose frame operands refer to.
  void select(const Group& group);
  Frame* acquire_frame(const FunctionCode& function);
  void release_lanes(Frame* from, LaneMask lanes);
  void add_group(const Group& group);
  void remove_group(std::uint32_t group);

 private:
  void merge_groups();
  void pick();
  void pick_any();
  const MicroOp* stop_at() const;
  std::uint32_t run_group(std::uint32_t quantum);
};

}  // namespace firebreak::softgpu
