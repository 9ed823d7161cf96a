// SPDX-License-Identifier: Apache-2.0
/// Entry points: events.
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

template <class Action>
CUresult with_event(CUevent event, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto found = process.events().find(event);
    return found ? std::forward<Action>(action)(process, *found) : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // namespace

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return with_context([&](Process& process, Context& context) {
    constexpr unsigned int known_flags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    *event =
        reinterpret_cast<CUevent>(process.events().add(std::make_shared<Event>(flags, context.handle())));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto found = process.events().find(event);
    if (!found || found->context() != context.handle()) return CUDA_ERROR_INVALID_HANDLE;
    if (target->is_captured() && (flags & CU_EVENT_RECORD_EXTERNAL) == 0) {
      found->record_in_capture(target->capture_place());
      return CUDA_SUCCESS;
    }
    Work work;
    work.on_gpu = false;
    work.node = std::make_shared<NodeContent>(NodeContent{EventRecordNode{event}});
    if (target->record(work)) return CUDA_SUCCESS;
    found->record(context.submit(target, std::move(work)));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

CUresult cuEventQuery(CUevent event) {
  return with_event(event, [](Process&, const Event& found) {
    if (found.captured().capture) return CUDA_ERROR_CAPTURED_EVENT;
    const CompletionPointer recorded = found.recorded();
    return !recorded || recorded->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

CUresult cuEventSynchronize(CUevent event) {
  return with_event(event, [](Process& process, const Event& found) {
    if (found.captured().capture) return CUDA_ERROR_CAPTURED_EVENT;
    const CompletionPointer recorded = found.recorded();
    return recorded ? process.completions().wait(*recorded) : CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return with_live_process([&](Process& process) {
    const auto first = process.events().find(start);
    const auto second = process.events().find(end);
    if (!first || !second) return CUDA_ERROR_INVALID_HANDLE;
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CompletionPointer begin = first->recorded();
    const CompletionPointer finish = second->recorded();
    const bool untimed = ((first->flags() | second->flags()) & CU_EVENT_DISABLE_TIMING) != 0;
    if (!begin || !finish || untimed) return CUDA_ERROR_INVALID_HANDLE;
    if (!begin->done() || !finish->done()) return CUDA_ERROR_NOT_READY;
    *milliseconds =
        static_cast<float>(static_cast<double>(finish->completed_ns() - begin->completed_ns()) / 1e6);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

CUresult cuEventDestroy_v2(CUevent event) {
  return with_live_process([&](Process& process) {
    return process.events().remove(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // extern "C"
