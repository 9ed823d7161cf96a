// SPDX-License-Identifier: Apache-2.0
/// Entry points: streams, host functions.
#include <algorithm>

#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

CUresult launch_host(CUstream stream, std::function<WorkOutcome()> run,
                     std::shared_ptr<const NodeContent> node = nullptr) {
  return with_stream(stream, [&](Process&, Context& context, const std::shared_ptr<Stream>& target) {
    Work work;
    work.on_gpu = false;
    work.run = std::move(run);
    work.node = std::move(node);
    context.submit(target, std::move(work));
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return with_context([&](Process&, Context& context) {
    if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const int clamped = std::clamp(priority, greatest_stream_priority, least_stream_priority);
    *stream = context.create_stream({flags, clamped, flags != CU_STREAM_NON_BLOCKING});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, least_stream_priority);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return with_live_process([&](Process& process) {
    for (const auto& context : process.contexts().all()) {
      const auto target = context->find_stream(stream);
      if (target) process.captures().forget(*target);
      if (context->destroy_stream(stream)) return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    target->set_attribute(attribute, *value);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = target->attribute(attribute);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return with_stream(stream, [](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    if (const CUresult forbidden = process.captures().allow_waiting_for(*target)) return forbidden;
    const CompletionPointer last = target->last();
    return !last || last->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return with_stream(stream, [](Process& process, Context&, const std::shared_ptr<Stream>& target) {
    if (const CUresult forbidden = process.captures().allow_waiting_for(*target)) return forbidden;
    const CompletionPointer last = target->last();
    return last ? process.completions().wait(*last) : CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto found = process.events().find(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    const CapturePlace place = found->captured();
    const bool is_external = (flags & CU_EVENT_WAIT_EXTERNAL) != 0;
    if (place.capture && !is_external) return process.captures().join(target, place);
    Work work;
    work.on_gpu = false;
    if (is_external) work.node = std::make_shared<NodeContent>(NodeContent{EventWaitNode{event}});
    if (target->is_captured() && !is_external)
      return found->recorded() ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
    if (target->record(work)) return CUDA_SUCCESS;
    if (CompletionPointer recorded = found->recorded()) work.dependencies.push_back(std::move(recorded));
    context.submit(target, std::move(work));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = target->options().flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>& target) {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = target->options().priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* answer) {
  return with_stream(stream, [&](Process&, Context& context, const std::shared_ptr<Stream>&) {
    if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *answer = context.handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto run = [=]() -> WorkOutcome {
    function(user_data);
    return WorkDone{};
  };
  return launch_host(stream, run,
                     std::make_shared<NodeContent>(NodeContent{HostNode{{function, user_data}}}));
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return launch_host(stream, [=]() -> WorkOutcome {
    callback(stream, CUDA_SUCCESS, user_data);
    return WorkDone{};
  });
}

}  // extern "C"
