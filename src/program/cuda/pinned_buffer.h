// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// Page-locked host memory that the GPU reads and writes too (cuMemHostAlloc, mapped and portable). Zeroed.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> allocate(const Driver& driver, std::size_t size_bytes);

  std::byte* data() const { return memory_.get().host; }
  std::span<std::byte> bytes() const { return {data(), size_bytes()}; }
  std::size_t size_bytes() const { return memory_.get().size_bytes; }
  /// The GPU sees it there.
  CUdeviceptr device_address() const { return memory_.get().device_address; }

 private:
  struct Memory {
    std::byte* host = nullptr;
    CUdeviceptr device_address = 0;
    std::size_t size_bytes = 0;
  };
  struct Free {
    void operator()(const Driver& driver, const Memory& memory) const { driver->cuMemFreeHost(memory.host); }
  };
  PinnedBuffer(const Driver& driver, Memory memory) : memory_(driver, memory) {}

  Owned<Memory, Free> memory_;
};

}  // namespace firebreak::cuda
