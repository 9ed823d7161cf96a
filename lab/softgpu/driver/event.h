// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/completion.h"
#include "softgpu/driver/stream.h"

namespace firebreak::softgpu::driver {

/// One CUDA event: where in which stream it was last recorded. Thread safe.
class Event {
 public:
  Event(unsigned int flags, CUcontext context) : flags_(flags), context_(context) {}
  unsigned int flags() const { return flags_; }
  /// Returns the context in whose streams it can be recorded.
  CUcontext context() const { return context_; }
  void record(CompletionPointer completion) {
    const std::lock_guard lock(mutex_);
    recorded_ = std::move(completion);
    captured_ = {};
  }
  /// Records it in a stream that is captured: a stream that waits for it takes part in the capture.
  void record_in_capture(CapturePlace place) {
    const std::lock_guard lock(mutex_);
    captured_ = std::move(place);
  }
  /// Returns a place without a capture where it was not recorded in one.
  CapturePlace captured() const {
    const std::lock_guard lock(mutex_);
    return captured_;
  }
  /// Null: never recorded.
  CompletionPointer recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }

 private:
  const unsigned int flags_;
  const CUcontext context_;
  mutable std::mutex mutex_;
  CompletionPointer recorded_;
  CapturePlace captured_;
};

}  // namespace firebreak::softgpu::driver
