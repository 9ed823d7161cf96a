// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/pointer_attributes.h"

#include <cstring>

namespace firebreak::softgpu::driver {

namespace {

template <class T>
CUresult put(void* data, const PointerInfo& info, T value) {
  const T answer = info.known ? value : T{};
  std::memcpy(data, &answer, sizeof(answer));
  return info.known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

PointerInfo pointer_info(const Process& process, std::uint64_t address) {
  if (const auto allocation = process.memory().find(address)) {
    const bool on_host = allocation->kind == AllocationKind::HostAllocated ||
                         allocation->kind == AllocationKind::HostRegistered;
    PointerInfo info{};
    info.known = info.is_accessible = true;
    info.begin = info.range_begin = allocation->begin;
    info.size_bytes = info.range_bytes = allocation->size_bytes;
    info.on_host = on_host;
    info.managed = allocation->kind == AllocationKind::Managed;
    info.id = allocation->id;
    info.context = allocation->context;
    return info;
  }
  if (const auto mapped = process.virtual_memory().find_mapped(address)) {
    PointerInfo info{};
    info.known = true;
    info.begin = info.id = mapped->begin;
    info.size_bytes = mapped->size_bytes;
    info.range_begin = mapped->reserved_begin;
    info.range_bytes = mapped->reserved_bytes;
    info.is_accessible = mapped->is_accessible;
    info.handle_types = mapped->handle_types;
    return info;
  }
  return {};
}

CUresult write_pointer_attribute(const PointerInfo& info, CUpointer_attribute attribute,
                                 std::uint64_t address, void* data) {
  const bool host_visible = info.on_host || info.managed;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, info, info.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, info,
                 static_cast<unsigned int>(info.on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, info, CUdeviceptr{address});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (info.known && !host_visible) return CUDA_ERROR_INVALID_VALUE;
      return put(data, info, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, info, static_cast<unsigned long long>(info.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, info, static_cast<unsigned int>(info.managed));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, info, 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, info, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(data, info, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, info, CUdeviceptr{info.range_begin});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, info, std::size_t{info.range_bytes});
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, info, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data, info, static_cast<unsigned long long>(info.handle_types));
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace firebreak::softgpu::driver
