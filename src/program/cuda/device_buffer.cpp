// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/device_buffer.h"

namespace firebreak::cuda {

Result<DeviceBuffer> DeviceBuffer::allocate(const Driver& driver, std::size_t size_bytes) {
  CUdeviceptr address = 0;
  const auto status = driver.check(driver->cuMemAlloc(&address, size_bytes), "cuMemAlloc");
  if (!status) return propagate(status, std::to_string(size_bytes) + " bytes of GPU memory");
  return DeviceBuffer(driver, Memory{address, size_bytes});
}

}  // namespace firebreak::cuda
