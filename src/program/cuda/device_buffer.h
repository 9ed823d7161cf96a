// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// GPU memory of the current context (cuMemAlloc); its content is undefined at first.
class DeviceBuffer {
 public:
  /// `size_bytes` is at least 1. ResourceExhausted: the GPU has not that much left.
  static Result<DeviceBuffer> allocate(const Driver& driver, std::size_t size_bytes);

  CUdeviceptr address() const { return memory_.get().address; }
  std::size_t size_bytes() const { return memory_.get().size_bytes; }

 private:
  struct Memory {
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
  };
  struct Free {
    void operator()(const Driver& driver, const Memory& memory) const { driver->cuMemFree(memory.address); }
  };
  DeviceBuffer(const Driver& driver, Memory memory) : memory_(driver, memory) {}

  Owned<Memory, Free> memory_;
};

}  // namespace firebreak::cuda
