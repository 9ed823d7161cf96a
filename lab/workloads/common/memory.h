// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "program/cuda/device_buffer.h"

namespace firebreak::workloads {

/// Gives a workload its GPU memory. What it gave out is valid as long as it lives.
class Memory {
 public:
  virtual ~Memory() = default;
  /// `name` tells the allocations of one workload apart. At least 256-byte aligned; the content is undefined.
  virtual Result<CUdeviceptr> allocate(const std::string& name, std::uint64_t size_bytes) = 0;
};

/// Plain device memory, which goes with the process.
class PrivateMemory final : public Memory {
 public:
  explicit PrivateMemory(const cuda::Driver& driver) : driver_(&driver) {}
  Result<CUdeviceptr> allocate(const std::string& name, std::uint64_t size_bytes) override;

 private:
  const cuda::Driver* driver_;
  std::vector<cuda::DeviceBuffer> buffers_;
};

}  // namespace firebreak::workloads
