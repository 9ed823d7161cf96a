// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/pinned_buffer.h"

#include <cstring>

namespace firebreak::cuda {

Result<PinnedBuffer> PinnedBuffer::allocate(const Driver& driver, std::size_t size_bytes) {
  void* host = nullptr;
  const auto allocated = driver.check(
      driver->cuMemHostAlloc(&host, size_bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
      "cuMemHostAlloc");
  if (!allocated) return propagate(allocated, std::to_string(size_bytes) + " bytes of pinned memory");
  std::memset(host, 0, size_bytes);

  CUdeviceptr address = 0;
  const auto mapped =
      driver.check(driver->cuMemHostGetDevicePointer(&address, host, 0), "cuMemHostGetDevicePointer");
  PinnedBuffer buffer(driver, Memory{static_cast<std::byte*>(host), address, size_bytes});
  if (!mapped) return propagate(mapped);
  return buffer;
}

}  // namespace firebreak::cuda
