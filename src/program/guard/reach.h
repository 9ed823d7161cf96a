// SPDX-License-Identifier: Apache-2.0
/// Reach: who can reach which addresses of the program's own reservations; where nobody can, the guard ranges
/// lie. Pure bookkeeping.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ground/os/address_set.h"
#include "ground/os/addresses.h"
#include "shared/abi/cuda_driver.h"

namespace firebreak::guard {

/// Rights belong to places (a GPU, the host), each of which the driver gives and takes them alone.
class Reach {
 public:
  /// The driver has set these rights.
  void note(os::AddressRange range, const CUmemAccessDesc& rights);
  /// Forgets what was mapped there, and all rights with it.
  void forget(os::AddressRange range);
  /// Returns the parts of `range` that nobody can reach, by address.
  std::vector<os::AddressRange> unreached_of(os::AddressRange range) const;

 private:
  std::map<std::pair<int, int>, os::AddressSet> places_;  ///< places by type and number
};

}  // namespace firebreak::guard
