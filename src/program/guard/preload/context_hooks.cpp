// SPDX-License-Identifier: Apache-2.0
/// Contexts come and go: with the first one comes the guard, with each goes what was allocated in it.
#include "program/guard/preload/hooks.h"

namespace firebreak::guard::hooks {
namespace {

CUresult after_context(const Call& call, CUresult result, CUcontext* context) {
  if (result == CUDA_SUCCESS) call.context_made(*context);
  return result;
}

/// Ends a context while no marker is put behind its launches.
template <class End>
CUresult end_context(const Call& call, const End& end) {
  CompletionMarkers* const markers = call.markers();
  return markers == nullptr ? end() : markers->undisturbed(end);
}

/// Launches in that context have ended.
void context_gone(const Call& call, CUcontext context) {
  if (CompletionMarkers* const markers = call.markers()) markers->context_gone(context);
}

bool is_active(const Call& call, CUdevice device) {
  unsigned int flags = 0;
  int active = 1;
  (void)call.driver.cuDevicePrimaryCtxGetState(device, &flags, &active);
  return active != 0;
}

void primary_gone(const Call& call, CUdevice device) {
  if (Guard* const ours = call.guard()) context_gone(call, ours->forget_primary(device));
}

using EndPrimary = PFN_cuDevicePrimaryCtxRelease_v2;

CUresult release_primary(const Call& call, EndPrimary release, CUdevice device) {
  return end_context(call, [&] {
    const CUresult result = release(device);
    if (result == CUDA_SUCCESS && !is_active(call, device)) primary_gone(call, device);
    return result;
  });
}

CUresult reset_primary(const Call& call, EndPrimary reset, CUdevice device) {
  return end_context(call, [&] {
    const CUresult result = reset(device);
    if (result == CUDA_SUCCESS) primary_gone(call, device);
    return result;
  });
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(const Call& call, CUcontext* context, CUdevice device) {
  const CUresult result = after_context(call, call.driver.cuDevicePrimaryCtxRetain(context, device), context);
  Guard* const ours = call.guard();
  if (ours != nullptr && result == CUDA_SUCCESS) ours->note_primary(device, *context);
  return result;
}

CUresult cuDevicePrimaryCtxRelease(const Call& call, CUdevice device) {
  return release_primary(call, call.driver.cuDevicePrimaryCtxRelease, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(const Call& call, CUdevice device) {
  return release_primary(call, call.driver.cuDevicePrimaryCtxRelease_v2, device);
}

CUresult cuDevicePrimaryCtxReset(const Call& call, CUdevice device) {
  return reset_primary(call, call.driver.cuDevicePrimaryCtxReset, device);
}

CUresult cuDevicePrimaryCtxReset_v2(const Call& call, CUdevice device) {
  return reset_primary(call, call.driver.cuDevicePrimaryCtxReset_v2, device);
}

CUresult cuCtxCreate_v2(const Call& call, CUcontext* context, unsigned int flags, CUdevice device) {
  return after_context(call, call.driver.cuCtxCreate_v2(context, flags, device), context);
}

CUresult cuCtxCreate_v3(const Call& call, CUcontext* context, CUexecAffinityParam* params, int param_count,
                        unsigned int flags, CUdevice device) {
  return after_context(call, call.driver.cuCtxCreate_v3(context, params, param_count, flags, device),
                       context);
}

CUresult cuCtxCreate_v4(const Call& call, CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
  return after_context(call, call.driver.cuCtxCreate_v4(context, params, flags, device), context);
}

CUresult cuCtxDestroy_v2(const Call& call, CUcontext context) {
  return end_context(call, [&] {
    const CUresult result = call.driver.cuCtxDestroy_v2(context);
    if (Guard* const ours = call.guard(); ours != nullptr && result == CUDA_SUCCESS) {
      ours->forget_context(context);
      context_gone(call, context);
    }
    return result;
  });
}

/// The green context keeps the primary context, which nobody else may have asked for.
CUresult cuGreenCtxCreate(const Call& call, CUgreenCtx* green, CUdevResourceDesc description, CUdevice device,
                          unsigned int flags) {
  const CUresult result = call.driver.cuGreenCtxCreate(green, description, device, flags);
  CUcontext primary = nullptr;
  if (result != CUDA_SUCCESS || call.driver.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
    return result;
  call.context_made(primary);
  if (Guard* const ours = call.guard(); ours != nullptr) {
    ours->note_primary(device, primary);
    ours->note_green(*green, device);
  }
  (void)call.driver.cuDevicePrimaryCtxRelease_v2(device);
  return result;
}

CUresult cuCtxFromGreenCtx(const Call& call, CUcontext* context, CUgreenCtx green) {
  const CUresult result = call.driver.cuCtxFromGreenCtx(context, green);
  Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
  if (ours != nullptr) ours->note_green_context(green, *context);
  return result;
}

CUresult cuGreenCtxDestroy(const Call& call, CUgreenCtx green) {
  return end_context(call, [&] {
    const CUresult result = call.driver.cuGreenCtxDestroy(green);
    Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
    const auto device = ours == nullptr ? std::nullopt : ours->forget_green(green);
    if (device && !is_active(call, *device)) primary_gone(call, *device);
    return result;
  });
}

CUresult cuCtxEnablePeerAccess(const Call& call, CUcontext peer, unsigned int flags) {
  if (Guard* const ours = call.guard(); ours != nullptr) {
    ours->pass_through("the program uses peer access: since then the driver allocates by itself, unguarded");
  }
  return call.driver.cuCtxEnablePeerAccess(peer, flags);
}

}  // namespace firebreak::guard::hooks
