// SPDX-License-Identifier: Apache-2.0
/// Entry points: green contexts, and the resources that they are made of.
#include <algorithm>

#include "ground/base/units.h"
#include "softgpu/driver/entry.h"
#include "softgpu/driver/green_context.h"

using namespace firebreak::softgpu::driver;

namespace {

/// How many SMs are given out at once: as on GPUs before compute capability 9, where it is eight.
constexpr unsigned int together = 2;
constexpr unsigned int green_api_version = 12040;

CUdevResource multiprocessors(unsigned int count) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {count, together, together};
  return resource;
}

CUresult answer(CUdevResource* resource, CUdevResourceType type, unsigned int count) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = multiprocessors(count);
  return CUDA_SUCCESS;
}

/// Serves functions that work on a green context.
template <class Action>
CUresult with_green(CUgreenCtx handle, Action&& action) {
  return with_live_process([&](Process& process) {
    const auto green = process.green_contexts().find(handle);
    if (!green) return CUDA_ERROR_INVALID_CONTEXT;
    return std::forward<Action>(action)(process, *green);
  });
}

}  // namespace

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return with_live_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return answer(resource, type, static_cast<unsigned int>(process.sm_count()));
  });
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  return with_live_process([&](Process& process) {
    const auto context = process.contexts().find(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    const auto all = static_cast<unsigned int>(process.sm_count());
    return answer(resource, type, context->multiprocessors().value_or(all));
  });
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource, CUdevResourceType type) {
  return with_green(handle, [&](Process&, const GreenContext& green) {
    return answer(resource, type, green.context->multiprocessors().value_or(0));
  });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* group_count,
                                     const CUdevResource* input, CUdevResource* remaining, unsigned int,
                                     unsigned int min_count) {
  if (group_count == nullptr || input == nullptr || input->type != CU_DEV_RESOURCE_TYPE_SM)
    return CUDA_ERROR_INVALID_VALUE;
  const auto each = static_cast<unsigned int>(firebreak::round_up(std::max(1U, min_count), together));
  const unsigned int possible = input->sm.smCount / each;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *group_count = result == nullptr ? possible : std::min(*group_count, possible);
  if (result == nullptr) return CUDA_SUCCESS;
  std::fill_n(result, *group_count, multiprocessors(each));
  if (remaining != nullptr) *remaining = multiprocessors(input->sm.smCount - each * *group_count);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources,
                                   unsigned int count) {
  return with_live_process([&](Process& process) {
    if (description == nullptr || resources == nullptr || count != 1 ||
        resources->type != CU_DEV_RESOURCE_TYPE_SM || resources->sm.smCount == 0)
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<ResourceDescription>();
    made->multiprocessors = resources->sm.smCount;
    *description = reinterpret_cast<CUdevResourceDesc>(process.resource_descriptions().add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxCreate(CUgreenCtx* handle, CUdevResourceDesc description, CUdevice device,
                          unsigned int flags) {
  return with_live_process([&](Process& process) {
    const auto described = process.resource_descriptions().find(description);
    if (handle == nullptr || !described || flags != CU_GREEN_CTX_DEFAULT_STREAM)
      return CUDA_ERROR_INVALID_VALUE;
    CUcontext primary = nullptr;
    if (const CUresult kept = cuDevicePrimaryCtxRetain(&primary, device); kept != CUDA_SUCCESS) return kept;
    auto made = std::make_shared<GreenContext>();
    made->device = device;
    made->context = process.create_context({0, green_api_version, described->multiprocessors, primary});
    *handle = reinterpret_cast<CUgreenCtx>(process.green_contexts().add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  return with_process([&](Process& process) {
    const auto green = process.green_contexts().remove(handle);
    if (!green) return CUDA_ERROR_INVALID_CONTEXT;
    if (current_context() == green->context->handle()) context_stack().pop_back();
    (void)process.destroy_context(green->context->handle());
    return cuDevicePrimaryCtxRelease_v2(green->device);
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx handle) {
  return with_green(handle, [&](Process&, const GreenContext& green) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = green.context->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  return with_green(handle, [&](Process&, const GreenContext& green) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = green.context->id();
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx handle, unsigned int flags, int priority) {
  return with_green(handle, [&](Process&, const GreenContext& green) {
    if (stream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const int clamped = std::clamp(priority, greatest_stream_priority, least_stream_priority);
    *stream = green.context->create_stream({flags, clamped, false});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* handle) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>&) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = nullptr;
    for (const auto& green : process.green_contexts().all()) {
      if (green->context->handle() == context.handle()) *handle = reinterpret_cast<CUgreenCtx>(green.get());
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
