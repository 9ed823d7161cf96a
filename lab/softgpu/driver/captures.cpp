// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/captures.h"

#include <algorithm>
#include <utility>

namespace firebreak::softgpu::driver {

CUstreamCaptureMode& capture_mode_of_thread() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool Captures::begin(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode) {
  const std::lock_guard lock(mutex_);
  if (!stream->begin_capture()) return false;
  captures_.push_back({stream, mode, std::this_thread::get_id()});
  return true;
}

Captures::End Captures::end(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(captures_, stream, &Capture::stream);
  if (found == captures_.end()) return {CUDA_ERROR_ILLEGAL_STATE, nullptr};
  if (found->mode != CU_STREAM_CAPTURE_MODE_RELAXED && found->thread != std::this_thread::get_id())
    return {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, nullptr};
  captures_.erase(found);
  const bool valid = stream->is_capture_valid();
  auto graph = stream->end_capture();
  if (!valid) return {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, nullptr};
  return {CUDA_SUCCESS, std::move(graph)};
}

template <class Forbids>
CUresult Captures::refuse_where(const Forbids& forbids) {
  const std::lock_guard lock(mutex_);
  CUresult result = CUDA_SUCCESS;
  for (const Capture& capture : captures_) {
    if (!forbids(capture)) continue;
    capture.stream->invalidate_capture();
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::allow_unsafe_call() {
  const CUstreamCaptureMode own = capture_mode_of_thread();
  if (own == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  return refuse_where([own](const Capture& capture) {
    if (capture.thread == std::this_thread::get_id()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return own == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  });
}

CUresult Captures::allow_waiting_for(const Context& context) {
  return refuse_where([&](const Capture& capture) { return capture.stream->context() == &context; });
}

CUresult Captures::allow_waiting_for(const Stream& stream) {
  return refuse_where([&](const Capture& capture) { return capture.stream.get() == &stream; });
}

}  // namespace firebreak::softgpu::driver
