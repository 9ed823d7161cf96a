// SPDX-License-Identifier: Apache-2.0
/// Entry points: allocations of every kind, and what a pointer is.
#include <cstdint>
#include <utility>

#include "ground/base/units.h"
#include "softgpu/driver/entry.h"
#include "softgpu/driver/pointer_attributes.h"

using namespace firebreak::softgpu::driver;

namespace {

std::uint64_t as_address(const void* host) { return reinterpret_cast<std::uint64_t>(host); }

/// Serves functions that a capture may forbid.
template <class Action>
CUresult with_context_uncaptured(Action&& action) {
  return with_context([&](Process& process, Context& context) {
    const CUresult forbidden = process.captures().allow_unsafe_call();
    return forbidden != CUDA_SUCCESS ? forbidden : std::forward<Action>(action)(process, context);
  });
}

/// Waits for the work of the context that the memory was made in, whichever is current, if any is, and though
/// a stream be captured.
CUresult free_after_work(CUdeviceptr pointer, AllocationKind kind) {
  return with_live_process([&](Process& process) {
    if (pointer == 0) return CUDA_SUCCESS;
    if (const CUresult forbidden = process.captures().allow_unsafe_call()) return forbidden;
    const auto allocation = process.memory().find_exact(pointer);
    const CUcontext made_in = allocation ? allocation->context : current_context();
    if (const auto context = process.contexts().find(made_in)) {
      if (const CUresult result = process.synchronize(*context); result != CUDA_SUCCESS) return result;
    }
    return process.memory().free(pointer, kind);
  });
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return with_context([&](Process& process, Context&) {
    if (free_bytes != nullptr) *free_bytes = process.gpu().free_bytes();
    if (total_bytes != nullptr) *total_bytes = process.gpu().total_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t size_bytes) {
  return with_context_uncaptured([&](Process& process, Context& context) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return store(pointer, process.memory().allocate(size_bytes, context.home()));
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
                            std::size_t height, unsigned int element_size_bytes) {
  const bool known_size = element_size_bytes == 4 || element_size_bytes == 8 || element_size_bytes == 16;
  if (pitch_bytes == nullptr || width_bytes == 0 || height == 0 || !known_size)
    return CUDA_ERROR_INVALID_VALUE;
  *pitch_bytes = firebreak::round_up(width_bytes, DeviceMemory::alignment_bytes);
  if (*pitch_bytes > SIZE_MAX / height) return CUDA_ERROR_OUT_OF_MEMORY;
  return cuMemAlloc_v2(pointer, *pitch_bytes * height);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return with_live_process([&](Process& process) {
    const auto allocation = process.memory().find(pointer);
    const bool managed = allocation && allocation->kind == AllocationKind::Managed;
    return free_after_work(pointer, managed ? AllocationKind::Managed : AllocationKind::Device);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size_bytes, CUdeviceptr pointer) {
  return with_context([&](Process& process, Context&) {
    const PointerInfo info = pointer_info(process, pointer);
    if (!info.is_accessible) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = info.begin;
    if (size_bytes != nullptr) *size_bytes = info.size_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** host, std::size_t size_bytes, unsigned int flags) {
  return with_context_uncaptured([&](Process& process, Context& context) {
    constexpr unsigned int known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (host == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    return store(host, process.memory().allocate_host(size_bytes, AllocationKind::HostAllocated, flags,
                                                      context.home()));
  });
}

CUresult cuMemAllocHost_v2(void** host, std::size_t size_bytes) {
  return cuMemHostAlloc(host, size_bytes, 0);
}

CUresult cuMemFreeHost(void* host) {
  return free_after_work(as_address(host), AllocationKind::HostAllocated);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pointer, void* host, unsigned int flags) {
  return with_context([&](Process& process, Context&) {
    if (pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = process.memory().find(as_address(host));
    if (!allocation || allocation->kind == AllocationKind::Device) return CUDA_ERROR_INVALID_VALUE;
    *pointer = as_address(host);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* host) {
  return with_context([&](Process& process, Context&) {
    const auto allocation = process.memory().find(as_address(host));
    if (flags == nullptr || !allocation || allocation->kind != AllocationKind::HostAllocated) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister_v2(void* host, std::size_t size_bytes, unsigned int flags) {
  return with_context_uncaptured([&](Process& process, Context& context) {
    constexpr unsigned int known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = process.memory().register_host(host, size_bytes, flags, context.home());
    if (result == CUDA_SUCCESS) process.share_host_memory(host, size_bytes);
    return result;
  });
}

CUresult cuMemHostUnregister(void* host) {
  return free_after_work(as_address(host), AllocationKind::HostRegistered);
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t size_bytes, unsigned int flags) {
  return with_context_uncaptured([&](Process& process, Context& context) {
    if (pointer == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto host =
        process.memory().allocate_host(size_bytes, AllocationKind::Managed, flags, context.home());
    if (!host) return host.error();
    *pointer = as_address(*host);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAdvise(CUdeviceptr pointer, std::size_t, CUmem_advise, CUdevice) {
  return with_context([&](Process& process, Context&) {
    const auto allocation = process.memory().find(pointer);
    const bool managed = allocation && allocation->kind == AllocationKind::Managed;
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t size_bytes, CUdevice device, CUstream stream) {
  return with_stream(stream, [&](Process&, Context&, const std::shared_ptr<Stream>&) {
    return cuMemAdvise(pointer, size_bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t size_bytes, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work allocating;  // the real driver has the memory only while the graph runs
    allocating.node =
        std::make_shared<NodeContent>(NodeContent{OtherNode{CU_GRAPH_NODE_TYPE_MEM_ALLOC, Work{}}});
    target->record(allocating);
    return store(pointer, process.memory().allocate(size_bytes, context.home()));
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto allocation = process.memory().find_exact(pointer);
    if (!allocation || allocation->kind != AllocationKind::Device) return CUDA_ERROR_INVALID_VALUE;
    // Memory goes into a graph only where a graph has allocated it.
    if (target->is_captured()) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    work.on_gpu = false;
    work.run = [&process, pointer]() -> WorkOutcome {
      process.memory().free(pointer, AllocationKind::Device);
      return WorkDone{};
    };
    context.submit(target, std::move(work));
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return with_context([&](Process& process, Context&) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return write_pointer_attribute(pointer_info(process, pointer), attribute, pointer, data);
  });
}

CUresult cuPointerGetAttributes(unsigned int attribute_count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  return with_context([&](Process& process, Context&) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const PointerInfo info = pointer_info(process, pointer);
    for (unsigned int index = 0; index < attribute_count; ++index) {
      const CUresult result = write_pointer_attribute(info, attributes[index], pointer, data[index]);
      if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
    }
    return CUDA_SUCCESS;  // attributes of unknown pointers are zero here, unlike in the singular form
  });
}

}  // extern "C"
