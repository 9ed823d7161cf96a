// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/captures.h"

#include <algorithm>
#include <utility>

namespace firebreak::softgpu::driver {

CUstreamCaptureMode& capture_mode_of_thread() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool Captures::begin(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                     std::shared_ptr<Graph> into, const GraphNodes& after) {
  const std::lock_guard lock(mutex_);
  auto under_way = std::make_shared<CaptureUnderWay>();
  under_way->id = next_id_++;
  under_way->origin = stream.get();
  under_way->mode = mode;
  under_way->thread = std::this_thread::get_id();
  if (into != nullptr) under_way->graph = std::move(into);
  if (!stream->begin_capture({under_way, after})) return false;
  captures_.push_back({std::move(under_way), {stream}});
  return true;
}

std::vector<Captures::Capture>::iterator Captures::find(const CaptureUnderWay* under_way) {
  return std::ranges::find_if(captures_,
                              [&](const Capture& each) { return each.under_way.get() == under_way; });
}

Captures::End Captures::end(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  const CapturePlace place = stream->capture_place();
  const auto found = find(place.capture.get());
  if (!place.capture || found == captures_.end()) return {CUDA_ERROR_ILLEGAL_STATE, nullptr};
  const CaptureUnderWay& ended = *place.capture;
  if (ended.origin != stream.get()) {
    place.capture->is_valid.store(false);
    return {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, nullptr};
  }
  if (ended.mode != CU_STREAM_CAPTURE_MODE_RELAXED && ended.thread != std::this_thread::get_id())
    return {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, nullptr};
  for (const auto& each : found->streams) each->end_capture();
  captures_.erase(found);
  if (!ended.is_valid.load()) return {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, nullptr};
  const GraphNodes leaves = ended.graph->leaves();
  const bool are_joined = std::ranges::all_of(
      leaves, [&](const auto& leaf) { return std::ranges::find(place.after, leaf) != place.after.end(); });
  if (!are_joined) return {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, nullptr};
  return {CUDA_SUCCESS, ended.graph};
}

CUresult Captures::join(const std::shared_ptr<Stream>& stream, const CapturePlace& place) {
  const std::lock_guard lock(mutex_);
  const auto found = find(place.capture.get());
  if (found == captures_.end()) return CUDA_ERROR_CAPTURED_EVENT;
  const CapturePlace now = stream->capture_place();
  if (now.capture && now.capture != place.capture) {
    now.capture->is_valid.store(false);
    place.capture->is_valid.store(false);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (now.capture) {
    stream->wait_in_capture(place.after, false);
  } else {
    stream->begin_capture(place);
    found->streams.push_back(stream);
  }
  return CUDA_SUCCESS;
}

void Captures::forget(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto found = find(stream.capture_place().capture.get());
  if (found == captures_.end()) return;
  found->under_way->is_valid.store(false);
  if (found->under_way->origin != &stream) return;
  for (const auto& each : found->streams) each->end_capture();
  captures_.erase(found);
}

template <class Forbids>
CUresult Captures::refuse_where(const Forbids& forbids) {
  const std::lock_guard lock(mutex_);
  CUresult result = CUDA_SUCCESS;
  for (const Capture& capture : captures_) {
    if (!forbids(capture)) continue;
    capture.under_way->is_valid.store(false);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::allow_unsafe_call() {
  const CUstreamCaptureMode own = capture_mode_of_thread();
  if (own == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  return refuse_where([own](const Capture& capture) {
    const CUstreamCaptureMode mode = capture.under_way->mode;
    if (capture.under_way->thread == std::this_thread::get_id())
      return mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return own == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  });
}

CUresult Captures::allow_waiting_for(const Context& context) {
  return refuse_where([&](const Capture& capture) {
    return std::ranges::any_of(capture.streams,
                               [&](const auto& stream) { return stream->context() == &context; });
  });
}

CUresult Captures::allow_waiting_for(const Stream& stream) {
  return refuse_where([&](const Capture& capture) {
    return std::ranges::any_of(capture.streams, [&](const auto& each) { return each.get() == &stream; });
  });
}

}  // namespace firebreak::softgpu::driver
