// SPDX-License-Identifier: Apache-2.0
/// The end of one piece of GPU work, and waiting for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "shared/abi/cuda_result.h"
#include "softgpu/driver/gpu_control.h"

namespace firebreak::softgpu::driver {

class Completion {
 public:
  bool done() const { return completed_ns_.load(std::memory_order_acquire) != 0; }
  /// CLOCK_MONOTONIC; 0: not done.
  std::int64_t completed_ns() const { return completed_ns_.load(std::memory_order_acquire); }

 private:
  friend class CompletionHub;
  std::atomic<std::int64_t> completed_ns_{0};
};
using CompletionPointer = std::shared_ptr<Completion>;

/// The place where everybody in the process waits for work to end or to die. Thread safe.
class CompletionHub {
 public:
  explicit CompletionHub(GpuControl& control) : control_(control) {}

  void complete(Completion& completion);
  /// CUDA_SUCCESS when it is done; else the sticky error, once that shows.
  CUresult wait(const Completion& completion);
  /// Serves workers: false as soon as the process's GPU work was stopped.
  bool wait_unless_stopped(const Completion& completion);
  /// Makes all waiters look again.
  void notify();

 private:
  GpuControl& control_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace firebreak::softgpu::driver
