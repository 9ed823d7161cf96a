// SPDX-License-Identifier: Apache-2.0
/// Entry points: contexts, the primary context, limits.
#include <algorithm>
#include <mutex>
#include <optional>
#include <span>

#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

constexpr unsigned int api_version_v2 = 3020;
constexpr unsigned int api_version_v4 = 12050;

using Affinities = std::span<const CUexecAffinityParam>;

/// How many SMs are asked for; the GPU has them, and execution affinity, under MPS alone.
Answer<std::optional<unsigned int>> multiprocessors_of(Process& process, Affinities affinities) {
  if (affinities.empty()) return std::nullopt;
  if (!process.is_mps_client()) return refuse(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  const CUexecAffinityParam& first = affinities.front();
  if (affinities.size() > 1 || first.type != CU_EXEC_AFFINITY_TYPE_SM_COUNT || first.param.smCount.val == 0)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  return first.param.smCount.val;
}

Affinities affinities_at(const CUexecAffinityParam* params, int count) {
  return params == nullptr || count <= 0 ? Affinities() : Affinities(params, static_cast<std::size_t>(count));
}

CUresult create_context(CUcontext* answer, unsigned int flags, CUdevice device, unsigned int api_version,
                        Affinities affinities = {}) {
  return with_live_process([&](Process& process) {
    if (answer == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    const auto multiprocessors = multiprocessors_of(process, affinities);
    if (!multiprocessors) return multiprocessors.error();
    if (process.domain().is_spoiled()) return CUDA_ERROR_LAUNCH_FAILED;
    if (const CUresult error = process.await_context(); error != CUDA_SUCCESS) return error;
    *answer = process.create_context({flags, api_version, *multiprocessors})->handle();
    context_stack().push_back(*answer);
    return CUDA_SUCCESS;
  });
}

CUresult with_primary(CUdevice device, CUresult (*action)(Process&, PrimaryContext&)) {
  return with_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(process.primary().mutex);
    return action(process, process.primary());
  });
}

bool has_primary(PrimaryContext& primary) {
  const std::lock_guard lock(primary.mutex);
  return primary.context != nullptr;
}

CUresult end_primary(Process& process, PrimaryContext& primary) {
  if (!primary.context) return CUDA_SUCCESS;
  process.destroy_context(primary.context->handle());
  primary.context.reset();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* answer, CUdevice device) {
  return with_live_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    PrimaryContext& primary = process.primary();
    // The mutex is not held, which others ask for who do not wait for the GPU.
    const CUresult error = has_primary(primary) ? CUDA_SUCCESS : process.await_context();
    if (error != CUDA_SUCCESS) return error;
    const std::lock_guard lock(primary.mutex);
    if (!primary.context && process.domain().is_spoiled()) return CUDA_ERROR_LAUNCH_FAILED;
    if (!primary.context) primary.context = process.create_context({primary.flags, api_version_v2});
    ++primary.references;
    *answer = primary.context->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return with_primary(device, [](Process& process, PrimaryContext& primary) {
    if (primary.references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    return --primary.references == 0 ? end_primary(process, primary) : CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return with_primary(device, &end_primary); }

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return with_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    PrimaryContext& primary = process.primary();
    const std::lock_guard lock(primary.mutex);
    primary.flags = flags;
    if (primary.context) primary.context->set_flags(flags);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return with_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    PrimaryContext& primary = process.primary();
    const std::lock_guard lock(primary.mutex);
    *flags = primary.flags;
    *active = primary.context ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create_context(context, flags, device, api_version_v2);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int param_count, unsigned int flags,
                        CUdevice device) {
  return create_context(context, flags, device, api_version_v2, affinities_at(params, param_count));
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  if (params != nullptr && params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const auto affinities = params == nullptr
                              ? Affinities()
                              : affinities_at(params->execAffinityParams, params->numExecAffinityParams);
  return create_context(context, flags, device, api_version_v4, affinities);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return with_process([&](Process& process) {
    const CUresult result = process.destroy_context(context);
    if (result == CUDA_SUCCESS && current_context() == context) context_stack().pop_back();
    return result;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return with_process([&](Process& process) {
    if (!process.contexts().find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return with_process([&](Process&) {
    if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = current_context();
    context_stack().pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

/// Nobody else has attached to it: there is no cuCtxAttach here.
CUresult cuCtxDetach(CUcontext context) {
  return context != current_context() ? CUDA_ERROR_INVALID_CONTEXT : cuCtxDestroy_v2(context);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return with_process([&](Process& process) {
    if (context != nullptr && !process.contexts().find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = context_stack();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return with_process([&](Process&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = current_context();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return with_process([&](Process&) {
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return with_context([&](Process&, Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return with_context([&](Process&, Context& context) {
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    context.set_flags(flags);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return with_process([&](Process& process) {
    const auto context = process.contexts().find(handle == nullptr ? current_context() : handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return with_process([&](Process& process) {
    const auto context = process.contexts().find(handle == nullptr ? current_context() : handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  return with_context([&](Process& process, Context& context) {
    if (affinity == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    const auto all = static_cast<unsigned int>(process.sm_count());
    affinity->type = type;
    affinity->param.smCount.val = std::min(context.multiprocessors().value_or(all), all);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return with_context([](Process& process, Context& context) {
    const CUresult forbidden = process.captures().allow_waiting_for(context);
    return forbidden != CUDA_SUCCESS ? forbidden : process.synchronize(context);
  });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  return with_context([&](Process&, Context& context) { return context.set_limit(limit, value); });
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return with_context([&](Process&, Context& context) { return store(value, context.limit(limit)); });
}

CUresult cuCtxGetStreamPriorityRange(int* least_priority, int* greatest_priority) {
  return with_context([&](Process&, Context&) {
    if (least_priority != nullptr) *least_priority = least_stream_priority;
    if (greatest_priority != nullptr) *greatest_priority = greatest_stream_priority;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
