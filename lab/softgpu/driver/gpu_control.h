// SPDX-License-Identifier: Apache-2.0
/// Says whether this process's GPU work may go on: the GPU may stand still, the domain may have faulted, MPS
/// may have ended this client. One object a process; running kernels poll it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "shared/abi/cuda_result.h"
#include "softgpu/interpreter/interpreter.h"
#include "softgpu/machine/domain.h"
#include "softgpu/machine/halted_multiprocessor.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu::driver {

/// Thread safe.
class GpuControl final : public ExecutionControl {
 public:
  GpuControl(std::shared_ptr<SharedGpu> gpu, std::shared_ptr<Domain> domain, std::uint32_t slot);

  SharedGpu& gpu() { return *gpu_; }
  const Domain& domain() const { return *place()->domain; }
  std::uint32_t slot() const { return place()->slot; }
  /// The process has left its domain, with nothing on the GPU: what happens there is nothing to it.
  void leave() { places_.back().is_left.store(true, std::memory_order_release); }
  /// Moves the process to another domain, which it has joined.
  void move_to(std::shared_ptr<Domain> domain, std::uint32_t slot);
  const HaltRules& halt_rules() const { return halt_rules_; }

  /// Blocks a kernel while the GPU stands still.
  bool should_stop() override;
  /// Nothing of this process runs on the GPU any more.
  bool stopped() const;
  /// Waits while an exception in the domain holds this process's work.
  void wait_while_still();
  /// Waits while others that have dumped keep this process from being halted for its own dump: no longer than
  /// their kernels would stand still on a halted multiprocessor. The faulter is halted already.
  void wait_until_halted(const DomainHold& hold);
  /// Waits for the fault, for a kernel that an exception has halted. True: this process had the first
  /// exception and has completed its own dump, the domain is held on, and its kernel counts as done: on an
  /// H100 its next call said CUDA_SUCCESS (results/h100/parking-unnamed.json). Others stood still
  /// (results/h100/parking-second.json).
  bool outlives_own_dump();
  /// The error that ended this process's GPU work, once it shows; CUDA_SUCCESS before.
  CUresult sticky_error() const;
  /// Returns when sticky_error() will change; empty: nothing is known to be due.
  std::optional<std::int64_t> error_due_ns() const;
  /// Makes running kernels look, where there is a reason to.
  void refresh();

 private:
  struct DueError {
    CUresult error = CUDA_SUCCESS;
    std::int64_t due_ns = 0;
  };
  /// The fault that ended this process's work, of its domain or of the device.
  std::optional<DueError> fault_error() const;
  bool stalled() const;
  bool stands_still() const { return domain().stands_still(slot()); }
  struct Place {
    std::shared_ptr<Domain> domain;
    std::uint32_t slot;
    std::atomic<bool> is_left{false};
    Place(std::shared_ptr<Domain> its_domain, std::uint32_t its_slot)
        : domain(std::move(its_domain)), slot(its_slot) {}
  };
  const Place* place() const { return place_.load(std::memory_order_acquire); }

  std::shared_ptr<SharedGpu> gpu_;
  std::deque<Place> places_;  ///< places, kept for good: a thread may still be looking at an earlier one
  std::atomic<const Place*> place_{nullptr};
  HaltRules halt_rules_ = HaltRules::from_environment();
};

}  // namespace firebreak::softgpu::driver
