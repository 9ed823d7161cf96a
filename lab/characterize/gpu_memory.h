// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/faults/watch/nvml_library.h"
#include "ground/base/result.h"
#include "ground/platform/nvml.h"

namespace firebreak::characterize {

/// How much memory of the first GPU is in use, by anybody, as NVML counts it. One thread's. While it is open
/// the driver keeps the GPU initialized, so that what it needs for itself is the same at two looks.
class GpuMemory {
 public:
  /// The errors of watch::NvmlLibrary::open(); Unavailable: NVML knows no GPU.
  static Result<GpuMemory> open(const std::string& nvml_library);
  Result<std::int64_t> used_bytes() const;

 private:
  GpuMemory(std::unique_ptr<watch::NvmlLibrary> library, abi::nvmlDevice_t device)
      : library_(std::move(library)), device_(device) {}

  std::unique_ptr<watch::NvmlLibrary> library_;
  abi::nvmlDevice_t device_;
};

}  // namespace firebreak::characterize
