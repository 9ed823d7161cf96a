// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/mapping.h"

namespace firebreak::cuda {

Result<Mapping> Mapping::map(const Device& device, CUdeviceptr address, const PhysicalAllocation& memory,
                             std::optional<Access> access) {
  const Driver& driver = device.driver();
  const auto mapped =
      driver.check(driver->cuMemMap(address, memory.size_bytes(), 0, memory.handle(), 0), "cuMemMap");
  if (!mapped) return propagate(mapped);
  Mapping mapping(driver, Range{address, memory.size_bytes()});
  if (!access) return mapping;
  const auto accessible = mapping.set_access(device, *access);
  if (!accessible) return propagate(accessible);
  return mapping;
}

Status Mapping::set_access(const Device& device, Access access) const {
  const Driver& driver = range_.driver();
  CUmemAccessDesc rights{};
  rights.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.handle()};
  rights.flags =
      access == Access::ReadOnly ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver.check(driver->cuMemSetAccess(address(), size_bytes(), &rights, 1), "cuMemSetAccess");
}

}  // namespace firebreak::cuda
