// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/physical_allocation.h"

#include <cstdint>
#include <cstring>

namespace firebreak::cuda {
namespace {

CUmemAllocationProp exportable_memory_of(const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.handle()};
  return properties;
}

}  // namespace

Result<std::size_t> PhysicalAllocation::granularity_bytes(const Device& device) {
  const Driver& driver = device.driver();
  const CUmemAllocationProp properties = exportable_memory_of(device);
  std::size_t granularity = 0;
  const auto status = driver.check(
      driver->cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
      "cuMemGetAllocationGranularity");
  if (!status) return propagate(status);
  return granularity;
}

Result<PhysicalAllocation> PhysicalAllocation::create(const Device& device, std::size_t size_bytes) {
  const Driver& driver = device.driver();
  const CUmemAllocationProp properties = exportable_memory_of(device);
  CUmemGenericAllocationHandle handle = 0;
  const auto status = driver.check(driver->cuMemCreate(&handle, size_bytes, &properties, 0), "cuMemCreate");
  if (!status) return propagate(status, std::to_string(size_bytes) + " bytes of GPU memory");
  return PhysicalAllocation(driver, Memory{handle, size_bytes});
}

Result<PhysicalAllocation> PhysicalAllocation::import_descriptor(const Driver& driver, int descriptor,
                                                                 std::size_t size_bytes) {
  // The driver takes the descriptor's number in a pointer's place.
  void* os_handle = nullptr;
  const std::intptr_t number = descriptor;
  std::memcpy(&os_handle, &number, sizeof number);
  CUmemGenericAllocationHandle handle = 0;
  const auto status = driver.check(
      driver->cuMemImportFromShareableHandle(&handle, os_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle");
  if (!status) return propagate(status);
  return PhysicalAllocation(driver, Memory{handle, size_bytes});
}

Result<int> PhysicalAllocation::export_descriptor() const {
  int descriptor = -1;
  const auto status = driver().check(driver()->cuMemExportToShareableHandle(
                                         &descriptor, handle(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                                     "cuMemExportToShareableHandle");
  if (!status) return propagate(status);
  return descriptor;
}

}  // namespace firebreak::cuda
