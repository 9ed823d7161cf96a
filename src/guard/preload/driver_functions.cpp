// SPDX-License-Identifier: Apache-2.0
/// The functions that programs reach in place of the driver's, under the driver's own names: programs that
/// link against libcuda find them first, all others are given them by cuGetProcAddress and dlsym
/// (replacements.cpp). Nothing is thrown across them and none ends the process.
#include <cstdint>

#include "guard/preload/driver_functions.h"
#include "guard/preload/process_guard.h"
#include "guard/preload/real_function.h"
#include "guard/preload/replacements.h"

using firebreak::abi::GuardFunction;
using firebreak::guard::ask_driver;
using firebreak::guard::Bypass;
using firebreak::guard::Guard;
using firebreak::guard::LaunchWords;
using firebreak::guard::ProcessGuard;
using firebreak::guard::words_of_process;

namespace {

/// The guard, up by now where there is a context to be guarded; null: the call is the driver's.
Guard* guard() {
  ProcessGuard* process = ProcessGuard::get();
  if (process == nullptr) return nullptr;
  process->guard().start_within_context();
  return &process->guard();
}

/// A context was made: now the process has what the blanket needs.
CUresult after_context(CUresult result, CUcontext* context) {
  ProcessGuard* process = result == CUDA_SUCCESS ? ProcessGuard::get() : nullptr;
  if (process == nullptr) return result;
  process->guard().start();
  if (process->words() != nullptr) process->words()->note_context(*context);
  return result;
}

/// Ends a context while no word is put behind its launches.
template <class End>
CUresult end_context(const End& end) {
  LaunchWords* const words = words_of_process();
  return words == nullptr ? end() : words->undisturbed(end);
}

/// What was launched in it has ended.
void context_gone(CUcontext context) {
  if (LaunchWords* const words = words_of_process()) words->context_gone(context);
}

void primary_gone(CUdevice device) {
  if (Guard* const ours = guard()) context_gone(ours->forget_primary(device));
}

/// The driver has given memory, or taken it back, by itself.
CUresult placed(CUresult result, GuardFunction function, CUdeviceptr pointer, std::size_t size_bytes) {
  Guard* const ours = result == CUDA_SUCCESS ? guard() : nullptr;
  if (ours != nullptr) ours->placed(function, pointer, size_bytes);
  return result;
}

CUresult displaced(CUresult result, CUdeviceptr pointer) {
  Guard* const ours = result == CUDA_SUCCESS ? guard() : nullptr;
  if (ours != nullptr) ours->displaced(pointer);
  return result;
}

CUresult placed_host(CUresult result, void** host, std::size_t size_bytes) {
  if (result != CUDA_SUCCESS) return result;
  return placed(result, GuardFunction::MemHostAlloc, reinterpret_cast<CUdeviceptr>(*host), size_bytes);
}

/// `meant`: by a handle that means the same to every function.
CUresult free_in_order(const char* name, CUdeviceptr pointer, CUstream stream, CUstream meant) {
  if (Guard* const ours = guard(); ours != nullptr) {
    if (const auto result = ours->free_in_order(pointer, meant)) return *result;
  }
  return displaced(ask_driver<CUresult (*)(CUdeviceptr, CUstream)>(name, pointer, stream), pointer);
}

/// Memory of a pool. Where a capture records the call, nothing is there yet.
template <class... Arguments>
CUresult allocate_in_order(const char* name, CUdeviceptr* pointer, std::size_t size_bytes,
                           Arguments... arguments) {
  const CUresult result = ask_driver<CUresult (*)(CUdeviceptr*, std::size_t, Arguments...)>(
      name, pointer, size_bytes, arguments...);
  return result != CUDA_SUCCESS ? result : placed(result, GuardFunction::MemAllocAsync, *pointer, size_bytes);
}

/// The driver knows the pages that an allocation of ours lies in, not the allocation.
void correct_range(CUpointer_attribute attribute, void* data, CUdeviceptr pointer) {
  const bool start = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
  if (data == nullptr || (!start && attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE)) return;
  Guard* const ours = guard();
  const auto range = ours == nullptr ? std::nullopt : ours->find(pointer);
  if (!range) return;
  if (start) {
    *static_cast<CUdeviceptr*>(data) = range->begin;
  } else {
    *static_cast<std::size_t*>(data) = range->size_bytes;
  }
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, std::uint64_t flags) {
  const CUresult result =
      ask_driver<PFN_cuGetProcAddress>("cuGetProcAddress", symbol, function, cuda_version, flags);
  if (result != CUDA_SUCCESS || symbol == nullptr || *function == nullptr || Bypass::active()) return result;
  void* ours = firebreak::guard::replacement_of_entry_point(symbol, cuda_version, flags);
  if (ours != nullptr) *function = ours;
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
  const CUresult result = ask_driver<PFN_cuGetProcAddress_v2>("cuGetProcAddress_v2", symbol, function,
                                                              cuda_version, flags, found);
  const bool none = function == nullptr || *function == nullptr;
  if (result != CUDA_SUCCESS || symbol == nullptr || none || Bypass::active()) return result;
  void* ours = firebreak::guard::replacement_of_entry_point(symbol, cuda_version, flags);
  if (ours != nullptr) *function = ours;
  return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const CUresult result = after_context(
      ask_driver<PFN_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain", context, device), context);
  if (Guard* const ours = guard(); ours != nullptr && result == CUDA_SUCCESS)
    ours->note_primary(device, *context);
  return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return end_context([device] {
    const CUresult result =
        ask_driver<PFN_cuDevicePrimaryCtxRelease_v2>("cuDevicePrimaryCtxRelease_v2", device);
    unsigned int flags = 0;
    int active = 1;
    (void)ask_driver<PFN_cuDevicePrimaryCtxGetState>("cuDevicePrimaryCtxGetState", device, &flags, &active);
    if (result == CUDA_SUCCESS && active == 0) primary_gone(device);
    return result;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return end_context([device] {
    const CUresult result = ask_driver<PFN_cuDevicePrimaryCtxReset_v2>("cuDevicePrimaryCtxReset_v2", device);
    if (result == CUDA_SUCCESS) primary_gone(device);
    return result;
  });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return after_context(ask_driver<PFN_cuCtxCreate_v2>("cuCtxCreate_v2", context, flags, device), context);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int param_count, unsigned int flags,
                        CUdevice device) {
  return after_context(
      ask_driver<PFN_cuCtxCreate_v3>("cuCtxCreate_v3", context, params, param_count, flags, device), context);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  return after_context(ask_driver<PFN_cuCtxCreate_v4>("cuCtxCreate_v4", context, params, flags, device),
                       context);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return end_context([context] {
    const CUresult result = ask_driver<PFN_cuCtxDestroy_v2>("cuCtxDestroy_v2", context);
    if (Guard* const ours = guard(); ours != nullptr && result == CUDA_SUCCESS) {
      ours->forget_context(context);
      context_gone(context);
    }
    return result;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t size_bytes) {
  Guard* const ours = guard();
  if (ours == nullptr) return ask_driver<PFN_cuMemAlloc_v2>("cuMemAlloc_v2", pointer, size_bytes);
  return ours->allocate(firebreak::abi::GuardFunction::MemAlloc, pointer, size_bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
                            std::size_t height, unsigned int element_bytes) {
  Guard* const ours = guard();
  if (ours != nullptr && ours->is_on()) {
    return ours->allocate_pitch(pointer, pitch_bytes, width_bytes, height, element_bytes);
  }
  return ask_driver<PFN_cuMemAllocPitch_v2>("cuMemAllocPitch_v2", pointer, pitch_bytes, width_bytes, height,
                                            element_bytes);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (Guard* const ours = guard(); ours != nullptr) {
    if (const auto result = ours->free(pointer)) return *result;
  }
  return displaced(ask_driver<PFN_cuMemFree_v2>("cuMemFree_v2", pointer), pointer);
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t size_bytes, unsigned int flags) {
  const CUresult result = ask_driver<PFN_cuMemAllocManaged>("cuMemAllocManaged", pointer, size_bytes, flags);
  return result != CUDA_SUCCESS ? result
                                : placed(result, GuardFunction::MemAllocManaged, *pointer, size_bytes);
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  return allocate_in_order("cuMemAllocAsync", pointer, size_bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  return allocate_in_order("cuMemAllocAsync_ptsz", pointer, size_bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t size_bytes, void* pool, CUstream stream) {
  return allocate_in_order("cuMemAllocFromPoolAsync", pointer, size_bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t size_bytes, void* pool,
                                      CUstream stream) {
  return allocate_in_order("cuMemAllocFromPoolAsync_ptsz", pointer, size_bytes, pool, stream);
}

CUresult cuMemHostAlloc(void** host, std::size_t size_bytes, unsigned int flags) {
  return placed_host(ask_driver<PFN_cuMemHostAlloc>("cuMemHostAlloc", host, size_bytes, flags), host,
                     size_bytes);
}

CUresult cuMemAllocHost_v2(void** host, std::size_t size_bytes) {
  return placed_host(ask_driver<PFN_cuMemAllocHost_v2>("cuMemAllocHost_v2", host, size_bytes), host,
                     size_bytes);
}

CUresult cuMemFreeHost(void* host) {
  return displaced(ask_driver<PFN_cuMemFreeHost>("cuMemFreeHost", host), reinterpret_cast<CUdeviceptr>(host));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return free_in_order("cuMemFreeAsync", pointer, stream, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  const auto own = reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT);
  return free_in_order("cuMemFreeAsync_ptsz", pointer, stream, stream == nullptr ? own : stream);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  Guard* const ours = guard();
  if (ours != nullptr && ours->find(pointer)) return ours->refuse_to_share();
  return ask_driver<PFN_cuIpcGetMemHandle>("cuIpcGetMemHandle", handle, pointer);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size_bytes, CUdeviceptr pointer) {
  Guard* const ours = guard();
  const auto range = ours == nullptr ? std::nullopt : ours->find(pointer);
  if (!range) {
    return ask_driver<PFN_cuMemGetAddressRange_v2>("cuMemGetAddressRange_v2", base, size_bytes, pointer);
  }
  if (base != nullptr) *base = range->begin;
  if (size_bytes != nullptr) *size_bytes = range->size_bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const CUresult result =
      ask_driver<PFN_cuPointerGetAttribute>("cuPointerGetAttribute", data, attribute, pointer);
  if (result == CUDA_SUCCESS) correct_range(attribute, data, pointer);
  return result;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  const CUresult result =
      ask_driver<PFN_cuPointerGetAttributes>("cuPointerGetAttributes", count, attributes, data, pointer);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned int i = 0; i < count; ++i) correct_range(attributes[i], data[i], pointer);
  return result;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t size_bytes, std::size_t alignment_bytes,
                             CUdeviceptr hint, unsigned long long flags) {
  Guard* const ours = pointer == nullptr ? nullptr : guard();
  if (ours != nullptr) return ours->reserve(pointer, size_bytes, alignment_bytes, hint, flags);
  return ask_driver<PFN_cuMemAddressReserve>("cuMemAddressReserve", pointer, size_bytes, alignment_bytes,
                                             hint, flags);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t size_bytes) {
  if (Guard* const ours = guard(); ours != nullptr) return ours->release(pointer, size_bytes);
  return ask_driver<PFN_cuMemAddressFree>("cuMemAddressFree", pointer, size_bytes);
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result =
      ask_driver<PFN_cuMemMap>("cuMemMap", pointer, size_bytes, offset_bytes, handle, flags);
  Guard* const ours = guard();
  if (ours != nullptr && result == CUDA_SUCCESS) ours->mapped(pointer, size_bytes);
  return result;
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t size_bytes) {
  if (Guard* const ours = guard(); ours != nullptr) return ours->unmap(pointer, size_bytes);
  return ask_driver<PFN_cuMemUnmap>("cuMemUnmap", pointer, size_bytes);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t size_bytes, const CUmemAccessDesc* rights,
                        std::size_t count) {
  Guard* const ours = guard();
  if (ours != nullptr && rights != nullptr && count != 0) {
    return ours->set_access(pointer, size_bytes, rights, count);
  }
  return ask_driver<PFN_cuMemSetAccess>("cuMemSetAccess", pointer, size_bytes, rights, count);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  if (Guard* const ours = guard(); ours != nullptr) {
    ours->pass_through("the program uses peer access: since then the driver allocates by itself, unguarded");
  }
  return ask_driver<CUresult (*)(CUcontext, unsigned int)>("cuCtxEnablePeerAccess", peer, flags);
}
