// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ground/os/addresses.h"

namespace firebreak::os {

/// A set of addresses, by ranges that neither overlap nor touch.
class AddressSet {
 public:
  void add(AddressRange range);
  void remove(AddressRange range);
  /// Returns the parts of `range` that are not in the set, by address.
  std::vector<AddressRange> missing_of(AddressRange range) const;
  /// Returns the set, by address; ranges that touch are one.
  std::vector<AddressRange> all() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< begin -> end
};

}  // namespace firebreak::os
