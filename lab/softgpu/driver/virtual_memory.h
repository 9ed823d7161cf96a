// SPDX-License-Identifier: Apache-2.0
/// cuMemAddressReserve, cuMemCreate, cuMemMap and what goes with them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/driver/driver_addresses.h"
#include "softgpu/driver/physical_memory.h"
#include "softgpu/driver/uvm_space.h"

namespace firebreak::softgpu::driver {

/// Thread safe.
class VirtualMemory {
 public:
  VirtualMemory(std::shared_ptr<SharedGpu> gpu, UvmSpace& space, DriverAddresses& addresses);

  Answer<std::uint64_t> reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes, std::uint64_t hint);
  CUresult release_reservation(std::uint64_t begin, std::uint64_t size_bytes);
  /// True when the address belongs to a reservation, mapped or not.
  bool is_reserved(std::uint64_t address) const;

  Answer<CUmemGenericAllocationHandle> create(std::uint64_t size_bytes,
                                              const CUmemAllocationProp& properties);
  CUresult release(CUmemGenericAllocationHandle handle);
  Answer<os::Fd> export_descriptor(CUmemGenericAllocationHandle handle) const;
  Answer<CUmemGenericAllocationHandle> import_descriptor(int fd);
  Answer<CUmemAllocationProp> properties(CUmemGenericAllocationHandle handle) const;
  /// One more reference to the handle whose memory is mapped at the address.
  Answer<CUmemGenericAllocationHandle> retain(std::uint64_t address);

  CUresult map(std::uint64_t begin, std::uint64_t size_bytes, std::uint64_t offset_bytes,
               CUmemGenericAllocationHandle handle);
  CUresult unmap(std::uint64_t begin, std::uint64_t size_bytes);
  CUresult set_access(std::uint64_t begin, std::uint64_t size_bytes, CUmemAccess_flags flags);
  Answer<CUmemAccess_flags> access(std::uint64_t address) const;

  struct MappedRange {
    std::uint64_t begin = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t reserved_begin = 0;
    std::uint64_t reserved_bytes = 0;
    int handle_types = 0;
    bool is_accessible = false;
  };
  Answer<MappedRange> find_mapped(std::uint64_t address) const;

 private:
  struct Handle {
    std::shared_ptr<PhysicalMemory> memory;
    CUmemAllocationProp properties{};
    std::uint32_t references = 1;  ///< 0: it is mapped, and to be retained or mapped again (H200)
  };
  struct Mapping {
    std::uint64_t size_bytes = 0;
    std::uint64_t offset_bytes = 0;  ///< offset in the memory
    CUmemGenericAllocationHandle handle = 0;
    std::shared_ptr<PhysicalMemory> memory;
    CUmemAllocationProp properties{};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };

  CUmemGenericAllocationHandle add_handle(std::shared_ptr<PhysicalMemory> memory,
                                          const CUmemAllocationProp& properties);
  void forget_if_unused(CUmemGenericAllocationHandle handle);
  /// The GPU and its UVM hear of a mapping with its first rights, as on an H100; false when something else
  /// has the addresses.
  bool give_access(std::uint64_t begin, Mapping& mapping, CUmemAccess_flags flags);
  /// True when whole mappings cover [begin, begin + size_bytes) without a hole.
  bool covered(std::uint64_t begin, std::uint64_t size_bytes) const;
  std::map<std::uint64_t, Mapping>::const_iterator mapping_at(std::uint64_t address) const;

  std::shared_ptr<SharedGpu> gpu_;
  UvmSpace& space_;
  DriverAddresses& addresses_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> reservations_;  // begin -> size
  std::map<std::uint64_t, Mapping> mappings_;            // mappings by begin
  std::map<CUmemGenericAllocationHandle, Handle> handles_;
  CUmemGenericAllocationHandle next_handle_ = 0x1000;
};

}  // namespace firebreak::softgpu::driver
