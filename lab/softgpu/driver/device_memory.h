// SPDX-License-Identifier: Apache-2.0
/// cuMemAlloc and its relatives: small allocations cut from 2 MiB chunks, large ones of their own, pinned and
/// managed host memory at the same address on both sides, and the table that knows them all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/driver/driver_addresses.h"
#include "softgpu/driver/physical_memory.h"
#include "softgpu/driver/uvm_space.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu::driver {

enum class AllocationKind { Device, HostAllocated, HostRegistered, Managed };

struct Allocation {
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
  AllocationKind kind = AllocationKind::Device;
  unsigned int flags = 0;  ///< size that the program asked for
  std::uint64_t id = 0;    ///< unique in the process
  CUcontext context = nullptr;
  bool contains(std::uint64_t address) const { return address - begin < size_bytes; }
};

/// Thread safe.
class DeviceMemory {
 public:
  /// Alignment of every allocation, as on the real driver.
  static constexpr std::uint64_t alignment_bytes = 512;

  DeviceMemory(std::shared_ptr<SharedGpu> gpu, UvmSpace& space, DriverAddresses& addresses);

  Answer<std::uint64_t> allocate(std::uint64_t size_bytes, CUcontext context);
  /// Page-locked host memory; its GPU address is its host address.
  Answer<void*> allocate_host(std::uint64_t size_bytes, AllocationKind kind, unsigned int flags,
                              CUcontext context);
  CUresult register_host(void* host, std::uint64_t size_bytes, unsigned int flags, CUcontext context);

  /// Frees what begins at exactly that address and is of that kind.
  CUresult free(std::uint64_t begin, AllocationKind kind);
  /// Frees everything that was allocated in a context.
  void free_all_of(CUcontext context);
  /// The allocation that holds the address.
  std::optional<Allocation> find(std::uint64_t address) const;
  /// The same, with a kind: INVALID_VALUE when it begins elsewhere or is of another kind.
  Answer<Allocation> find_exact(std::uint64_t begin) const;
  /// The memory behind an allocation, and where in it that begins.
  struct Backing {
    std::shared_ptr<PhysicalMemory> memory;
    std::uint64_t offset_bytes = 0;
  };
  /// INVALID_VALUE: no device memory of cuMemAlloc's begins there.
  Answer<Backing> backing(std::uint64_t begin) const;

 private:
  struct Chunk {
    AddressRange range;
    std::shared_ptr<PhysicalMemory> memory;
    std::map<std::uint64_t, std::uint64_t> free_pieces;  // address -> size
  };

  Answer<Chunk*> add_chunk(std::uint64_t size_bytes);
  std::optional<std::uint64_t> cut(Chunk& chunk, std::uint64_t size_bytes);
  void give_back(std::uint64_t begin, std::uint64_t size_bytes);
  Answer<void*> remember_host(Allocation allocation, std::byte* host, std::shared_ptr<void> owner);

  std::shared_ptr<SharedGpu> gpu_;
  UvmSpace& space_;
  DriverAddresses& addresses_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Chunk> chunks_;            // chunks by address
  std::map<std::uint64_t, Allocation> allocations_;  // allocations by address
  std::uint64_t next_id_ = 1;
};

}  // namespace firebreak::softgpu::driver
