// SPDX-License-Identifier: Apache-2.0
/// GPU memory at an address that every process of a tenant shares: made and exported by one, imported by the
/// others.
#pragma once

#include <cstdint>

#include "ground/os/fd.h"
#include "program/cuda/mapping.h"
#include "program/cuda/physical_allocation.h"

namespace firebreak::client {

/// One allocation, mapped in this process. Unmapped, then its addresses freed, at the end; the memory itself
/// lives on in the vault.
class GpuMemory {
 public:
  /// New, zeroed memory at `address`, and the descriptor to share it by. `size_bytes` is a multiple of
  /// granularity_bytes.
  struct Created;
  static Result<Created> create(const cuda::Device& device, std::uint64_t address, std::uint64_t size_bytes);
  /// The same in two steps, for memory whose address is not known before it is made.
  struct Made {
    cuda::PhysicalAllocation physical;
    os::Fd descriptor;
  };
  static Result<Made> make(const cuda::Device& device, std::uint64_t size_bytes);
  static Result<GpuMemory> map_zeroed(const cuda::Device& device, std::uint64_t address, const Made& made);
  /// Memory that another process made.
  static Result<GpuMemory> import_at(const cuda::Device& device, std::uint64_t address,
                                     std::uint64_t size_bytes, cuda::Access access, int descriptor);

  std::uint64_t address() const { return mapping_.address(); }
  std::uint64_t size_bytes() const { return mapping_.size_bytes(); }

 private:
  explicit GpuMemory(cuda::Mapping mapping) : mapping_(std::move(mapping)) {}

  cuda::Mapping mapping_;
};

struct GpuMemory::Created {
  GpuMemory memory;
  os::Fd descriptor;
};

}  // namespace firebreak::client
