// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/completion.h"

#include <chrono>

#include "ground/base/clock.h"

namespace firebreak::softgpu::driver {

void CompletionHub::complete(Completion& completion) {
  {
    const std::lock_guard lock(mutex_);
    completion.completed_ns_.store(now_ns(), std::memory_order_release);
  }
  changed_.notify_all();
}

CUresult CompletionHub::wait(const Completion& completion) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (const CUresult error = control_.sticky_error(); error != CUDA_SUCCESS) return error;
    if (completion.done()) return CUDA_SUCCESS;
    if (const auto due_ns = control_.error_due_ns()) {
      changed_.wait_until(lock, from_ns(*due_ns));
    } else {
      changed_.wait(lock);
    }
  }
}

bool CompletionHub::wait_unless_stopped(const Completion& completion) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completion.done() || control_.stopped(); });
  return completion.done();
}

void CompletionHub::notify() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace firebreak::softgpu::driver
