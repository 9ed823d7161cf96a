// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// GPU virtual addresses with nothing behind them yet. An access before something is mapped there is a fault.
class AddressReservation {
 public:
  /// Anywhere. `size_bytes` is a multiple of the granularity; `alignment_bytes` a power of two, 0: the
  /// driver's.
  static Result<AddressReservation> reserve(const Driver& driver, std::size_t size_bytes,
                                            std::size_t alignment_bytes = 0);
  /// Exactly at `address`. Unavailable when something is there already.
  static Result<AddressReservation> reserve_at(const Driver& driver, CUdeviceptr address,
                                               std::size_t size_bytes);

  CUdeviceptr address() const { return range_.get().address; }
  std::size_t size_bytes() const { return range_.get().size_bytes; }

 private:
  struct Range {
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
  };
  struct Free {
    void operator()(const Driver& driver, const Range& range) const {
      driver->cuMemAddressFree(range.address, range.size_bytes);
    }
  };
  AddressReservation(const Driver& driver, Range range) : range_(driver, range) {}
  static Result<AddressReservation> reserve(const Driver& driver, Range wanted, std::size_t alignment_bytes);

  Owned<Range, Free> range_;
};

}  // namespace firebreak::cuda
