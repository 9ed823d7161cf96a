// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "program/cuda/device.h"
#include "program/cuda/physical_allocation.h"

namespace firebreak::cuda {

enum class Access { ReadOnly, ReadWrite };

/// Physical memory at an address of an AddressReservation, which must outlive it. The allocation may go
/// earlier: a mapping keeps the memory.
class Mapping {
 public:
  /// All of `memory` is mapped at `address`, with rights for `device`; with an empty `access` nobody may
  /// touch it yet.
  static Result<Mapping> map(const Device& device, CUdeviceptr address, const PhysicalAllocation& memory,
                             std::optional<Access> access);

  /// Changes the rights.
  Status set_access(const Device& device, Access access) const;

  CUdeviceptr address() const { return range_.get().address; }
  std::size_t size_bytes() const { return range_.get().size_bytes; }

 private:
  struct Range {
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
  };
  struct Unmap {
    void operator()(const Driver& driver, const Range& range) const {
      driver->cuMemUnmap(range.address, range.size_bytes);
    }
  };
  Mapping(const Driver& driver, Range range) : range_(driver, range) {}

  Owned<Range, Unmap> range_;
};

}  // namespace firebreak::cuda
