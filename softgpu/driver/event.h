// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>

#include "softgpu/driver/completion.h"

namespace firebreak::softgpu::driver {

/// One CUDA event: where in which stream it was last recorded. Thread safe.
class Event {
 public:
  explicit Event(unsigned int flags) : flags_(flags) {}
  unsigned int flags() const { return flags_; }
  void record(CompletionPointer completion) {
    const std::lock_guard lock(mutex_);
    recorded_ = std::move(completion);
  }
  /// Null: never recorded.
  CompletionPointer recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }

 private:
  const unsigned int flags_;
  mutable std::mutex mutex_;
  CompletionPointer recorded_;
};

}  // namespace firebreak::softgpu::driver
