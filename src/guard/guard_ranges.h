// SPDX-License-Identifier: Apache-2.0
/// Guard ranges: UVM managed ranges over addresses that nobody uses. An access of the GPU's there is an
/// ordinary page fault: serviced, told by UVM's tools, and no error (measured on an H100, driver 580.159.04:
/// results/h100/containment.json). No memory until something is touched.
#pragma once

#include <vector>

#include "base/result.h"
#include "os/addresses.h"
#include "os/kernel.h"

namespace firebreak::guard {

/// Used by one thread at a time.
class GuardRanges {
 public:
  /// Through the UVM descriptors that CUDA has opened in this process. NotFound: it has none.
  static Result<GuardRanges> of_this_process(os::Kernel& kernel);

  /// Over addresses that nobody has mapped. Unavailable: somebody has.
  Status lay(os::AddressRange range) { return lay(range, os::Occupant::Nobody); }
  /// Over addresses that the driver has reserved (cuMemAddressReserve) and that the GPU cannot reach: the
  /// CPU's side of them is a placeholder, and UVM hears of them with cuMemSetAccess.
  Status lay_over_reserved(os::AddressRange range) { return lay(range, os::Occupant::Placeholder); }
  /// The placeholder is there again, before the GPU is to reach something real.
  Status cut_reserved(os::AddressRange range) { return os::hold_range(range); }

 private:
  explicit GuardRanges(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {}
  Status lay(os::AddressRange range, os::Occupant occupant);

  /// CUDA's own, by number, never closed here. A process has two and one of them has its address space; the
  /// driver says which by taking the range. After the first, that one alone.
  std::vector<int> descriptors_;
};

}  // namespace firebreak::guard
