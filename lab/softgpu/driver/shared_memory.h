// SPDX-License-Identifier: Apache-2.0
/// cuIpcGetMemHandle and its kin: device memory of cuMemAlloc for other processes. A handle names a
/// descriptor of the process that shares, which the other one duplicates.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ground/os/fd.h"
#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/driver_addresses.h"
#include "softgpu/driver/uvm_space.h"

namespace firebreak::softgpu::driver {

/// Thread safe.
class SharedMemory {
 public:
  SharedMemory(DeviceMemory& memory, UvmSpace& space, DriverAddresses& addresses)
      : memory_(memory), space_(space), addresses_(addresses) {}

  /// INVALID_VALUE for what cuMemAlloc did not give, as memory of cuMemCreate.
  Answer<CUipcMemHandle> share(std::uint64_t begin);
  /// INVALID_CONTEXT for a handle of this process, INVALID_VALUE where what shared it has gone.
  Answer<std::uint64_t> open(const CUipcMemHandle& handle);
  CUresult close(std::uint64_t begin);

 private:
  struct Shared {
    std::weak_ptr<PhysicalMemory> memory;
    os::Fd descriptor;
  };

  DeviceMemory& memory_;
  UvmSpace& space_;
  DriverAddresses& addresses_;
  std::mutex mutex_;                              ///< guards what follows
  std::vector<Shared> shared_;                    // Freed memory is forgotten when more is shared.
  std::map<std::uint64_t, AddressRange> opened_;  // This lists mapped memory by the address that was told.
};

}  // namespace firebreak::softgpu::driver
