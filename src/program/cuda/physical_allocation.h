// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "program/cuda/device.h"
#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// GPU memory without an address. The memory lives while a handle, a mapping or an exported descriptor of it
/// does, in any process, whatever became of the process that made it.
class PhysicalAllocation {
 public:
  /// Memory of `device` is made and mapped in steps of this many bytes, a power of two.
  static Result<std::size_t> granularity_bytes(const Device& device);

  /// `size_bytes` is a multiple of the granularity.
  static Result<PhysicalAllocation> create(const Device& device, std::size_t size_bytes);
  /// This makes another handle to the memory that the descriptor stands for; the descriptor stays the
  /// caller's.
  static Result<PhysicalAllocation> import_descriptor(const Driver& driver, int descriptor,
                                                      std::size_t size_bytes);

  /// A new POSIX descriptor, which the caller owns and closes.
  Result<int> export_descriptor() const;

  CUmemGenericAllocationHandle handle() const { return memory_.get().handle; }
  /// The size is the one that the maker of this object gave: the driver does not say how large an import is.
  std::size_t size_bytes() const { return memory_.get().size_bytes; }
  const Driver& driver() const { return memory_.driver(); }

 private:
  struct Memory {
    CUmemGenericAllocationHandle handle = 0;
    std::size_t size_bytes = 0;
  };
  struct Release {
    void operator()(const Driver& driver, const Memory& memory) const { driver->cuMemRelease(memory.handle); }
  };
  PhysicalAllocation(const Driver& driver, Memory memory) : memory_(driver, memory) {}

  Owned<Memory, Release> memory_;
};

}  // namespace firebreak::cuda
