// SPDX-License-Identifier: Apache-2.0
/// What a sample tenant does, apart from how it is run: alone, as an active, or as a standby that takes over.
///
/// The state rule: what a half-run step left behind never shows in the output. Step 0 makes everything from
/// the seed; every later step is a function of what the step before committed (kept memory and the forward
/// state), and may be run again from there, whatever an interrupted run of it has written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "workloads/common/gpu.h"
#include "workloads/common/memory.h"

namespace firebreak::workloads {

/// Part of the forward state.
struct StateRange {
  std::size_t offset = 0;
  std::size_t size_bytes = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  /// Steps go from 0 (initialise) to this one.
  virtual std::uint64_t last_step() const = 0;

  /// Gets all memory: from `kept` what a standby needs to go on, from `scratch` the rest. Once, before all
  /// that follows.
  virtual Status allocate(Memory& kept, Memory& scratch) = 0;

  /// Runs every kernel of `gpu` once, on memory of its own, and waits: the next launch of each starts at
  /// once. For any thread, whatever others do with this object.
  virtual Status warm_up(const Gpu& gpu) const = 0;

  /// Moves between two steps: later work is queued in `gpu`, a second context of the same process and
  /// program, whose stream waits for what is queued already. Memory stays where it is.
  virtual Status move_to(const Gpu& gpu) = 0;

  /// Queues all of `step`. Steps come in order, from 0 or from where take_over said.
  virtual Status queue_step(const Gpu& gpu, std::uint64_t step) = 0;

  /// The forward state after the step that was queued last; valid until the next call.
  virtual std::span<const std::byte> state() const = 0;

  /// Ranges of it that this step changed, valid as long; nothing: any of it.
  virtual std::optional<std::span<const StateRange>> changed() const { return std::nullopt; }

  /// Goes to the committed state before `next_step` and queues what restores memory: one kernel at least.
  /// `state` is that of step next_step - 1, or empty for step 0.
  virtual Status take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> state) = 0;

  /// The result, after the last step. Waits for the GPU.
  virtual Result<std::string> output(const Gpu& gpu) = 0;
};

}  // namespace firebreak::workloads
