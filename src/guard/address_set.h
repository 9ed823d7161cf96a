// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "os/addresses.h"

namespace firebreak::guard {

/// A set of addresses, by ranges that neither overlap nor touch.
class AddressSet {
 public:
  void add(os::AddressRange range);
  void remove(os::AddressRange range);
  /// What of `range` is not in the set, by address.
  std::vector<os::AddressRange> missing_of(os::AddressRange range) const;
  /// What is in the set, by address; ranges that touch are one.
  std::vector<os::AddressRange> all() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< begin -> end
};

}  // namespace firebreak::guard
