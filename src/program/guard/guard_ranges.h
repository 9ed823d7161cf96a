// SPDX-License-Identifier: Apache-2.0
/// Guard ranges: UVM managed ranges over addresses that nobody uses. An access of the GPU's there is an
/// ordinary page fault: serviced, told by UVM's tools, and no error (measured on an H100, driver 580.159.04:
/// results/h100/containment.json). No memory until something is touched.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/address_set.h"
#include "ground/os/addresses.h"
#include "ground/os/kernel.h"

namespace firebreak::guard {

/// The UVM descriptors of this process that CUDA has opened, by number; of all its GPU address spaces.
Result<std::vector<int>> uvm_descriptors_of_this_process(os::Kernel& kernel);

/// Returns, of these, the descriptors of the address space in which the process works now. Empty: it has one
/// alone.
using FindDescriptors = std::function<std::vector<int>()>;

/// Thread safe. Waits for nobody who asks the driver for anything.
class GuardRanges {
 public:
  /// Makes them through the UVM descriptors that CUDA has opened in this process; where it has several
  /// address spaces, through those that `find` names. NotFound: it has none.
  static Result<GuardRanges> of_this_process(os::Kernel& kernel, FindDescriptors find = nullptr);

  /// Lays a range over addresses that nobody has mapped. Unavailable: somebody has.
  Status lay(os::AddressRange range) { return lay(range, os::Occupant::Nobody); }
  /// Lays a range over addresses that the driver has reserved (cuMemAddressReserve) and that the GPU cannot
  /// reach: the CPU's side of them is a placeholder, and UVM hears of them with cuMemSetAccess.
  Status lay_over_reserved(os::AddressRange range) { return lay(range, os::Occupant::Placeholder); }
  /// The placeholder is there again, before the GPU is to reach something real.
  Status cut_reserved(os::AddressRange range);
  /// The addresses are nobody's again.
  void release(os::AddressRange range);

  /// The process works in another address space from now on: all that lies becomes that one's. What cannot be
  /// laid there is no guard range any more, and the first error is answered. In the same one nothing is done.
  Status follow();
  /// All that lies becomes nobody's until follow(); its addresses stay kept.
  void leave();

 private:
  /// The descriptors of CUDA's, by number, never closed here. An address space has two, and one of them takes
  /// ranges; the driver says which by taking one. After the first, that one alone.
  struct Books {
    std::mutex mutex;
    std::vector<int> descriptors;
    os::AddressSet laid;
  };

  GuardRanges(os::Kernel& kernel, FindDescriptors find) : kernel_(kernel), find_(std::move(find)) {}
  Status find_descriptors();
  Status lay(os::AddressRange range, os::Occupant occupant);
  Status map(os::AddressRange range, os::Occupant occupant);

  os::Kernel& kernel_;
  FindDescriptors find_;
  std::unique_ptr<Books> books_ = std::make_unique<Books>();
};

}  // namespace firebreak::guard
