// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/memory.h"

namespace firebreak::workloads {

Result<CUdeviceptr> PrivateMemory::allocate(const std::string& name, std::uint64_t size_bytes) {
  auto buffer = cuda::DeviceBuffer::allocate(*driver_, size_bytes);
  if (!buffer) return propagate(buffer, name);
  buffers_.push_back(std::move(*buffer));
  return buffers_.back().address();
}

}  // namespace firebreak::workloads
