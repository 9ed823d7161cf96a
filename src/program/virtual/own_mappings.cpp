// SPDX-License-Identifier: Apache-2.0
/// The program's own virtual memory management. Where only the anchor is there, nothing of it is kept.
#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

/// `plain` in the anchor, else `followed`.
template <class Plain, class Follow>
CUresult follow(const OwnCall& call, const Plain& plain, const Follow& followed) {
  return call.all.call(
      [&](const Turn& turn) { return turn.slot == anchor ? plain(turn.driver) : followed(turn); });
}

/// The spare is to have it, too.
template <class Plain, class Follow>
CUresult follow_news(const OwnCall& call, const Plain& plain, const Follow& followed) {
  const CUresult result = follow(call, plain, followed);
  if (result == CUDA_SUCCESS && !call.all.is_plain()) call.all.something_new();
  return result;
}

/// What the instance calls it; where the program has no such memory, what the program says.
MemoryHandle handle_here(const Turn& turn, MemoryHandle seen) {
  return turn.all.mappings().handle_in(turn.slot, seen).value_or(seen);
}

/// Memory that comes from elsewhere: the program is aside before it has it.
template <class Make>
CUresult make_aside(const OwnCall& call, const char* why, MemoryHandle* handle, const Make& make) {
  return call.all.call([&](const Turn& turn) {
    if (turn.slot == anchor || handle == nullptr) return make(turn.driver, handle);
    MemoryHandle own = 0;
    const CUresult result = make(turn.driver, &own);
    if (result != CUDA_SUCCESS) return result;
    call.all.stand_aside(why);
    *handle = call.all.mappings().add(turn.instance, own);
    return result;
  });
}

/// What was freed in the order of streams is taken up before the GPU counts as full.
template <class Create>
CUresult with_later_frees(const OwnCall& call, const Turn& turn, const Create& create) {
  const CUresult result = create();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || call.all.graphs().are_captures_under_way() ||
      turn.driver.cuCtxSynchronize() != CUDA_SUCCESS)
    return result;
  call.all.later_frees().take_up(call.all.memory(), turn.instance);
  return create();
}

}  // namespace

// ---- Addresses ----

CUresult cuMemAddressReserve(const OwnCall& call, CUdeviceptr* pointer, std::size_t size_bytes,
                             std::size_t alignment_bytes, CUdeviceptr address, unsigned long long flags) {
  return follow(
      call,
      [&](const cuda::Backend& driver) {
        return driver.cuMemAddressReserve(pointer, size_bytes, alignment_bytes, address, flags);
      },
      [&](const Turn& turn) {
        const CUresult result =
            call.all.mappings().reserve(turn.instance, size_bytes, alignment_bytes, address, flags, pointer);
        if (result == CUDA_SUCCESS && !is_in_window(*pointer))
          call.all.stand_aside("it reserves more addresses than all instances have in common");
        return result;
      });
}

CUresult cuMemAddressFree(const OwnCall& call, CUdeviceptr pointer, std::size_t size_bytes) {
  return follow(
      call, [&](const cuda::Backend& driver) { return driver.cuMemAddressFree(pointer, size_bytes); },
      [&](const Turn& turn) { return call.all.mappings().free(turn.instance, pointer, size_bytes); });
}

// ---- Memory ----

CUresult cuMemCreate(const OwnCall& call, MemoryHandle* handle, std::size_t size_bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return follow_news(
      call,
      [&](const cuda::Backend& driver) { return driver.cuMemCreate(handle, size_bytes, properties, flags); },
      [&](const Turn& turn) {
        const char* const why = properties == nullptr ? nullptr : why_not_for_spare(*properties);
        bool is_for_spare = why == nullptr;
        const CUresult result = with_later_frees(call, turn, [&] {
          return call.all.mappings().create(turn.instance, size_bytes, properties, flags, &is_for_spare,
                                            handle);
        });
        if (result == CUDA_SUCCESS && !is_for_spare)
          call.all.stand_aside(why == nullptr ? "it creates memory that the driver does not share" : why);
        return result;
      });
}

CUresult cuMemRelease(const OwnCall& call, MemoryHandle handle) {
  return follow(
      call, [&](const cuda::Backend& driver) { return driver.cuMemRelease(handle); },
      [&](const Turn& turn) { return call.all.mappings().release(turn.instance, handle); });
}

CUresult cuMemGetAllocationPropertiesFromHandle(const OwnCall& call, CUmemAllocationProp* properties,
                                                MemoryHandle handle) {
  return follow(
      call,
      [&](const cuda::Backend& driver) {
        return driver.cuMemGetAllocationPropertiesFromHandle(properties, handle);
      },
      [&](const Turn&) { return call.all.mappings().properties(handle, properties); });
}

CUresult cuMemRetainAllocationHandle(const OwnCall& call, MemoryHandle* handle, void* address) {
  return follow(
      call, [&](const cuda::Backend& driver) { return driver.cuMemRetainAllocationHandle(handle, address); },
      [&](const Turn& turn) {
        return call.all.mappings().retain(turn.instance, reinterpret_cast<CUdeviceptr>(address), handle);
      });
}

// ---- Mappings ----

CUresult cuMemMap(const OwnCall& call, CUdeviceptr pointer, std::size_t size_bytes, std::size_t offset_bytes,
                  MemoryHandle handle, unsigned long long flags) {
  return follow_news(
      call,
      [&](const cuda::Backend& driver) {
        return driver.cuMemMap(pointer, size_bytes, offset_bytes, handle, flags);
      },
      [&](const Turn& turn) {
        return call.all.mappings().map(turn.instance, pointer, size_bytes, offset_bytes, handle, flags);
      });
}

CUresult cuMemUnmap(const OwnCall& call, CUdeviceptr pointer, std::size_t size_bytes) {
  return follow(
      call, [&](const cuda::Backend& driver) { return driver.cuMemUnmap(pointer, size_bytes); },
      [&](const Turn& turn) {
        const CUresult result = call.all.mappings().unmap(turn.instance, pointer, size_bytes);
        if (result == CUDA_SUCCESS) call.all.gave_back();
        return result;
      });
}

CUresult cuMemSetAccess(const OwnCall& call, CUdeviceptr pointer, std::size_t size_bytes,
                        const CUmemAccessDesc* descriptors, std::size_t count) {
  return follow_news(
      call,
      [&](const cuda::Backend& driver) {
        return driver.cuMemSetAccess(pointer, size_bytes, descriptors, count);
      },
      [&](const Turn& turn) {
        const CUresult result =
            call.all.mappings().set_access(turn.instance, pointer, size_bytes, descriptors, count);
        if (result != CUDA_SUCCESS || descriptors == nullptr) return result;
        const char* const why = why_not_for_spare(std::span(descriptors, count));
        if (why != nullptr) call.all.stand_aside(why);
        return result;
      });
}

CUresult cuMemGetAccess(const OwnCall& call, unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
  return follow(
      call, [&](const cuda::Backend& driver) { return driver.cuMemGetAccess(flags, location, pointer); },
      [&](const Turn& turn) { return call.all.mappings().access(turn.instance, pointer, location, flags); });
}

// ---- Memory of several processes ----

namespace {

constexpr const char* shares_memory = "it shares memory or events with other processes";
constexpr const char* has_multicast = "it has multicast memory";

}  // namespace

CUresult cuMemExportToShareableHandle(const OwnCall& call, void* shareable_handle, MemoryHandle handle,
                                      CUmemAllocationHandleType handle_type, unsigned long long flags) {
  return follow(
      call,
      [&](const cuda::Backend& driver) {
        return driver.cuMemExportToShareableHandle(shareable_handle, handle, handle_type, flags);
      },
      [&](const Turn& turn) {
        const CUresult result =
            call.all.mappings().export_to(turn.instance, shareable_handle, handle, handle_type, flags);
        if (result == CUDA_SUCCESS) call.all.stand_aside(shares_memory);
        return result;
      });
}

CUresult cuMemImportFromShareableHandle(const OwnCall& call, MemoryHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType handle_type) {
  return make_aside(call, shares_memory, handle, [&](const cuda::Backend& driver, MemoryHandle* own) {
    return driver.cuMemImportFromShareableHandle(own, os_handle, handle_type);
  });
}

CUresult cuMulticastCreate(const OwnCall& call, MemoryHandle* multicast,
                           const CUmulticastObjectProp* properties) {
  return make_aside(call, has_multicast, multicast, [&](const cuda::Backend& driver, MemoryHandle* own) {
    return driver.cuMulticastCreate(own, properties);
  });
}

CUresult cuMulticastAddDevice(const OwnCall& call, MemoryHandle multicast, CUdevice device) {
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuMulticastAddDevice(handle_here(turn, multicast), device);
  });
}

CUresult cuMulticastBindMem(const OwnCall& call, MemoryHandle multicast, std::size_t multicast_offset_bytes,
                            MemoryHandle memory, std::size_t memory_offset_bytes, std::size_t size,
                            unsigned long long flags) {
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuMulticastBindMem(handle_here(turn, multicast), multicast_offset_bytes,
                                          handle_here(turn, memory), memory_offset_bytes, size, flags);
  });
}

CUresult cuMulticastBindAddr(const OwnCall& call, MemoryHandle multicast, std::size_t multicast_offset_bytes,
                             CUdeviceptr base, std::size_t size, unsigned long long flags) {
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuMulticastBindAddr(handle_here(turn, multicast), multicast_offset_bytes, base, size,
                                           flags);
  });
}

CUresult cuMulticastUnbind(const OwnCall& call, MemoryHandle multicast, CUdevice device,
                           std::size_t multicast_offset_bytes, std::size_t size) {
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuMulticastUnbind(handle_here(turn, multicast), device, multicast_offset_bytes, size);
  });
}

}  // namespace firebreak::virtual_driver::own
