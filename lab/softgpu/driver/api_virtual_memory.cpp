// SPDX-License-Identifier: Apache-2.0
/// Entry points: virtual memory management.
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

CUresult check_properties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  const int others = properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return others == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

bool is_this_gpu(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id == 0;
}

bool is_access(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace

extern "C" {

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t size_bytes, std::size_t alignment_bytes,
                             CUdeviceptr address, unsigned long long flags) {
  return with_live_process([&](Process& process) {
    if (pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return store(pointer, process.virtual_memory().reserve(size_bytes, alignment_bytes, address));
  });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t size_bytes) {
  return with_live_process(
      [&](Process& process) { return process.virtual_memory().release_reservation(pointer, size_bytes); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size_bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return with_live_process([&](Process& process) {
    if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult checked = check_properties(properties); checked != CUDA_SUCCESS) return checked;
    return store(handle, process.virtual_memory().create(size_bytes, *properties));
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return with_live_process([&](Process& process) { return process.virtual_memory().release(handle); });
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return with_live_process([&](Process& process) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return process.virtual_memory().map(pointer, size_bytes, offset_bytes, handle);
  });
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t size_bytes) {
  return with_live_process(
      [&](Process& process) { return process.virtual_memory().unmap(pointer, size_bytes); });
}

CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t size_bytes, const CUmemAccessDesc* descriptors,
                        std::size_t count) {
  return with_live_process([&](Process& process) {
    if (descriptors == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index) {
      const CUmemAccessDesc& descriptor = descriptors[index];
      if (!is_this_gpu(descriptor.location) || !is_access(descriptor.flags)) return CUDA_ERROR_INVALID_VALUE;
      const CUresult result = process.virtual_memory().set_access(pointer, size_bytes, descriptor.flags);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer) {
  return with_live_process([&](Process& process) {
    if (flags == nullptr || location == nullptr || !is_this_gpu(*location)) return CUDA_ERROR_INVALID_VALUE;
    return store(flags, process.virtual_memory().access(pointer));
  });
}

CUresult cuMemExportToShareableHandle(void* shareable_handle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handle_type, unsigned long long flags) {
  return with_live_process([&](Process& process) {
    if (shareable_handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    auto descriptor = process.virtual_memory().export_descriptor(handle);
    if (!descriptor) return descriptor.error();
    *static_cast<int*>(shareable_handle) = descriptor->release();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType handle_type) {
  return with_live_process([&](Process& process) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
    return store(handle, process.virtual_memory().import_descriptor(fd));
  });
}

CUresult cuMemGetAllocationGranularity(std::size_t* answer, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  return with_live_process([&](Process&) {
    if (answer == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult checked = check_properties(properties); checked != CUDA_SUCCESS) return checked;
    *answer = granularity_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return with_live_process(
      [&](Process& process) { return store(properties, process.virtual_memory().properties(handle)); });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return with_live_process([&](Process& process) {
    return store(handle, process.virtual_memory().retain(reinterpret_cast<std::uint64_t>(address)));
  });
}

}  // extern "C"
