// SPDX-License-Identifier: Apache-2.0
/// Memory comes and goes, and what programs ask about it.
#include "program/guard/preload/hooks.h"

namespace firebreak::guard::hooks {
namespace {

using abi::GuardFunction;

/// The driver has given memory, or taken it back, by itself.
CUresult placed(const Call& call, CUresult result, GuardFunction function, const CUdeviceptr* pointer,
                std::size_t size_bytes) {
  Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
  if (ours != nullptr) ours->placed(function, *pointer, size_bytes);
  return result;
}

CUresult placed_host(const Call& call, CUresult result, void** host, std::size_t size_bytes) {
  if (result != CUDA_SUCCESS) return result;
  const auto pointer = reinterpret_cast<CUdeviceptr>(*host);
  return placed(call, result, GuardFunction::MemHostAlloc, &pointer, size_bytes);
}

CUresult displaced(const Call& call, CUresult result, CUdeviceptr pointer) {
  Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
  if (ours != nullptr) ours->displaced(pointer);
  return result;
}

/// The driver knows the pages that an allocation of ours lies in, not the allocation; and what is mapped is
/// no context's.
void correct_range(const Call& call, CUpointer_attribute attribute, void* data, CUdeviceptr pointer) {
  const bool is_ours_to_say =
      attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
      attribute == CU_POINTER_ATTRIBUTE_CONTEXT || attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID;
  if (data == nullptr || !is_ours_to_say) return;
  Guard* const ours = call.guard();
  const auto range = ours == nullptr ? std::nullopt : ours->find(pointer);
  if (!range) return;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = range->begin;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = range->size_bytes;
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = range->id;
      break;
    default:
      *static_cast<CUcontext*>(data) = range->context;
  }
}

}  // namespace

CUresult cuMemAlloc_v2(const Call& call, CUdeviceptr* pointer, std::size_t size_bytes) {
  Guard* const ours = call.guard();
  if (ours == nullptr) return call.driver.cuMemAlloc_v2(pointer, size_bytes);
  return ours->allocate(GuardFunction::MemAlloc, pointer, size_bytes);
}

CUresult cuMemAllocPitch_v2(const Call& call, CUdeviceptr* pointer, std::size_t* pitch_bytes,
                            std::size_t width_bytes, std::size_t height, unsigned int element_bytes) {
  Guard* const ours = call.guard();
  if (ours != nullptr && ours->is_on()) {
    return ours->allocate_pitch(pointer, pitch_bytes, width_bytes, height, element_bytes);
  }
  return call.driver.cuMemAllocPitch_v2(pointer, pitch_bytes, width_bytes, height, element_bytes);
}

CUresult cuMemFree_v2(const Call& call, CUdeviceptr pointer) {
  if (Guard* const ours = call.guard(); ours != nullptr) {
    if (const auto result = ours->free(pointer)) return *result;
  }
  return displaced(call, call.driver.cuMemFree_v2(pointer), pointer);
}

CUresult cuMemAllocManaged(const Call& call, CUdeviceptr* pointer, std::size_t size_bytes,
                           unsigned int flags) {
  return placed(call, call.driver.cuMemAllocManaged(pointer, size_bytes, flags),
                GuardFunction::MemAllocManaged, pointer, size_bytes);
}

// The memory is a pool's. Where a capture records the call, nothing is there yet.
CUresult cuMemAllocAsync(const Call& call, CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  const auto allocate = call.which(call.driver.cuMemAllocAsync, call.driver.cuMemAllocAsync_ptsz);
  return placed(call, allocate(pointer, size_bytes, stream), GuardFunction::MemAllocAsync, pointer,
                size_bytes);
}

CUresult cuMemAllocFromPoolAsync(const Call& call, CUdeviceptr* pointer, std::size_t size_bytes,
                                 CUmemoryPool pool, CUstream stream) {
  const auto allocate =
      call.which(call.driver.cuMemAllocFromPoolAsync, call.driver.cuMemAllocFromPoolAsync_ptsz);
  return placed(call, allocate(pointer, size_bytes, pool, stream), GuardFunction::MemAllocAsync, pointer,
                size_bytes);
}

CUresult cuMemFreeAsync(const Call& call, CUdeviceptr pointer, CUstream stream) {
  const auto own = reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT);
  const CUstream meant = call.per_thread && stream == nullptr ? own : stream;
  if (Guard* const ours = call.guard(); ours != nullptr) {
    if (const auto result = ours->free_in_order(pointer, meant)) return *result;
  }
  const auto free = call.which(call.driver.cuMemFreeAsync, call.driver.cuMemFreeAsync_ptsz);
  return displaced(call, free(pointer, stream), pointer);
}

CUresult cuMemHostAlloc(const Call& call, void** host, std::size_t size_bytes, unsigned int flags) {
  return placed_host(call, call.driver.cuMemHostAlloc(host, size_bytes, flags), host, size_bytes);
}

CUresult cuMemAllocHost_v2(const Call& call, void** host, std::size_t size_bytes) {
  return placed_host(call, call.driver.cuMemAllocHost_v2(host, size_bytes), host, size_bytes);
}

CUresult cuMemFreeHost(const Call& call, void* host) {
  return displaced(call, call.driver.cuMemFreeHost(host), reinterpret_cast<CUdeviceptr>(host));
}

CUresult cuIpcGetMemHandle(const Call& call, CUipcMemHandle* handle, CUdeviceptr pointer) {
  Guard* const ours = call.guard();
  if (ours != nullptr && ours->find(pointer)) return ours->refuse_to_share();
  return call.driver.cuIpcGetMemHandle(handle, pointer);
}

CUresult cuMemGetAddressRange_v2(const Call& call, CUdeviceptr* base, std::size_t* size_bytes,
                                 CUdeviceptr pointer) {
  Guard* const ours = call.guard();
  const auto range = ours == nullptr ? std::nullopt : ours->find(pointer);
  if (!range) return call.driver.cuMemGetAddressRange_v2(base, size_bytes, pointer);
  if (base != nullptr) *base = range->begin;
  if (size_bytes != nullptr) *size_bytes = range->size_bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(const Call& call, void* data, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  const CUresult result = call.driver.cuPointerGetAttribute(data, attribute, pointer);
  if (result == CUDA_SUCCESS) correct_range(call, attribute, data, pointer);
  return result;
}

CUresult cuPointerGetAttributes(const Call& call, unsigned int count, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr pointer) {
  const CUresult result = call.driver.cuPointerGetAttributes(count, attributes, data, pointer);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned int i = 0; i < count; ++i) correct_range(call, attributes[i], data[i], pointer);
  return result;
}

CUresult cuMemAddressReserve(const Call& call, CUdeviceptr* pointer, std::size_t size_bytes,
                             std::size_t alignment_bytes, CUdeviceptr hint, unsigned long long flags) {
  Guard* const ours = pointer == nullptr ? nullptr : call.guard();
  if (ours != nullptr) return ours->reserve(pointer, size_bytes, alignment_bytes, hint, flags);
  return call.driver.cuMemAddressReserve(pointer, size_bytes, alignment_bytes, hint, flags);
}

CUresult cuMemAddressFree(const Call& call, CUdeviceptr pointer, std::size_t size_bytes) {
  if (Guard* const ours = call.guard(); ours != nullptr) return ours->release(pointer, size_bytes);
  return call.driver.cuMemAddressFree(pointer, size_bytes);
}

CUresult cuMemMap(const Call& call, CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = call.driver.cuMemMap(pointer, size_bytes, offset_bytes, handle, flags);
  Guard* const ours = call.guard();
  if (ours != nullptr && result == CUDA_SUCCESS) ours->mapped(pointer, size_bytes);
  return result;
}

CUresult cuMemUnmap(const Call& call, CUdeviceptr pointer, std::size_t size_bytes) {
  if (Guard* const ours = call.guard(); ours != nullptr) return ours->unmap(pointer, size_bytes);
  return call.driver.cuMemUnmap(pointer, size_bytes);
}

CUresult cuMemSetAccess(const Call& call, CUdeviceptr pointer, std::size_t size_bytes,
                        const CUmemAccessDesc* rights, std::size_t count) {
  Guard* const ours = call.guard();
  if (ours != nullptr && rights != nullptr && count != 0) {
    return ours->set_access(pointer, size_bytes, rights, count);
  }
  return call.driver.cuMemSetAccess(pointer, size_bytes, rights, count);
}

}  // namespace firebreak::guard::hooks
