// SPDX-License-Identifier: Apache-2.0
/// The end of what device_allocations.cpp has made: at once, in stream order, with its context, or as soon as
/// waiting is allowed again.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "program/guard/guard.h"

namespace firebreak::guard {
namespace {

/// A capture waits for those who wait for a context, a second at most.
constexpr int capture_looks_max = 10'000;
constexpr std::chrono::microseconds capture_looks_again{100};

/// Makes a context current for as long as it lives.
class Within {
 public:
  Within(const cuda::Driver& driver, CUcontext context)
      : driver_(driver), result_(driver->cuCtxPushCurrent(context)) {}
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  ~Within() {
    CUcontext context = nullptr;
    if (result_ == CUDA_SUCCESS) (void)driver_->cuCtxPopCurrent(&context);
  }
  CUresult result() const { return result_; }

 private:
  const cuda::Driver& driver_;
  CUresult result_;
};

}  // namespace

void Guard::capture_begins(CUstream stream) {
  {
    const std::lock_guard lock(mutex_);
    captured_.push_back(stream);
    captures_.store(captured_.size());
  }
  // Who waits for a context by now has not seen this capture, and would end it. Its kernel may wait for this
  // thread.
  for (int looks = 0; waits_.load() != 0 && looks < capture_looks_max; ++looks)
    std::this_thread::sleep_for(capture_looks_again);
}

void Guard::capture_ends(CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(captured_, stream);
  if (found != captured_.end()) captured_.erase(found);
  captures_.store(captured_.size());
}

/// With a small allocation of the driver's own, which goes again at once.
CUresult Guard::ask_about_captures(CUcontext context) {
  const Within within(driver_, context);
  if (within.result() != CUDA_SUCCESS) return within.result();
  CUdeviceptr asked = 0;
  const CUresult result = driver_->cuMemAlloc(&asked, 1);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return CUDA_SUCCESS;  // nothing forbids it
  return result == CUDA_SUCCESS ? driver_->cuMemFree(asked) : result;
}

CUresult Guard::wait_for(CUcontext context) {
  const Within within(driver_, context);
  return within.result() == CUDA_SUCCESS ? driver_->cuCtxSynchronize() : within.result();
}

void Guard::drop(CUdeviceptr pointer, const Allocation& allocation) {
  ledger_.freed(pointer);
  if (!allocation.in_slab) {
    take_memory_away(allocation.block);
    return;
  }
  const auto given = slabs_[allocation.context].give(pointer);
  if (given && given->empty) take_memory_away({*given->empty, *given->empty + Arena::granule_bytes});
}

std::optional<CUresult> Guard::free(CUdeviceptr pointer) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(pointer);
    if (found == allocations_.end()) return {};
    context = found->second.context;
  }
  // As the driver's own: what was launched before may still use it. Whom it waits for is the context that
  // the memory was made in, and while a stream is captured nobody may be waited for.
  ++waits_;  // before it looks for captures: each of the two sees the other
  const bool later = is_capturing();
  const CUresult waited = later ? CUDA_SUCCESS : wait_for(context);
  --waits_;
  const CUresult result = later ? ask_about_captures(context) : waited;
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(pointer);
  if (found == allocations_.end()) return CUDA_ERROR_INVALID_VALUE;  // freed twice at once
  if (later) {
    leaving_.push_back({pointer, found->second, nullptr, nullptr});
  } else {
    drop(pointer, found->second);
  }
  allocations_.erase(found);
  if (!later) let_go_of(context);
  return CUDA_SUCCESS;
}

CUresult Guard::record_end(CUstream stream, Leaving* leaving) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver_->cuStreamIsCapturing(stream, &status);
  if (result != CUDA_SUCCESS) return result;
  // Into a graph only what a graph has allocated goes.
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_INVALID_VALUE;
  result = driver_->cuStreamGetCtx(stream, &leaving->event_context);
  if (result != CUDA_SUCCESS) return result;
  const Within within(driver_, leaving->event_context);
  if (within.result() != CUDA_SUCCESS) return within.result();
  result = driver_->cuEventCreate(&leaving->event, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return result;
  result = driver_->cuEventRecord(leaving->event, stream);
  if (result != CUDA_SUCCESS) (void)driver_->cuEventDestroy(leaving->event);
  return result;
}

std::optional<CUresult> Guard::free_in_order(CUdeviceptr pointer, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(pointer);
  if (found == allocations_.end()) return {};
  if (!is_capturing()) let_go();
  Leaving leaving{pointer, found->second, nullptr, nullptr};
  const CUresult result = record_end(stream, &leaving);
  if (result != CUDA_SUCCESS) return result;
  leaving_.push_back(leaving);
  allocations_.erase(found);
  return CUDA_SUCCESS;
}

void Guard::let_go() {
  std::erase_if(leaving_, [this](const Leaving& leaving) {
    if (leaving.event == nullptr) return false;
    const Within within(driver_, leaving.event_context);
    if (within.result() != CUDA_SUCCESS || driver_->cuEventQuery(leaving.event) != CUDA_SUCCESS) return false;
    (void)driver_->cuEventDestroy(leaving.event);
    drop(leaving.pointer, leaving.allocation);
    return true;
  });
}

/// The context is idle: what waited for no more than that.
void Guard::let_go_of(CUcontext context) {
  std::erase_if(leaving_, [&](const Leaving& leaving) {
    if (leaving.event != nullptr || leaving.allocation.context != context) return false;
    drop(leaving.pointer, leaving.allocation);
    return true;
  });
}

bool Guard::wait_and_let_go() {
  if (leaving_.empty() || is_capturing()) return false;
  for (const Leaving& leaving : std::vector(leaving_)) {
    if (leaving.event != nullptr) {
      const Within within(driver_, leaving.event_context);
      (void)driver_->cuEventSynchronize(leaving.event);
    } else if (wait_for(leaving.allocation.context) == CUDA_SUCCESS) {
      let_go_of(leaving.allocation.context);
    }
  }
  let_go();
  return true;
}

void Guard::forget_context(CUcontext context) {
  const std::lock_guard lock(mutex_);
  // What a context leaves behind, and what a stream of it was to free, has nobody left who uses it.
  std::erase_if(leaving_, [&](const Leaving& leaving) {
    if (leaving.allocation.context != context && leaving.event_context != context) return false;
    drop(leaving.pointer, leaving.allocation);
    return true;
  });
  for (auto next = allocations_.begin(); next != allocations_.end();) {
    if (next->second.context != context) {
      ++next;
      continue;
    }
    drop(next->first, next->second);
    next = allocations_.erase(next);
  }
  slabs_.erase(context);
  std::erase_if(placed_, [&](const auto& entry) {
    if (entry.second != context) return false;
    ledger_.freed(entry.first);
    return true;
  });
}

}  // namespace firebreak::guard
