// SPDX-License-Identifier: Apache-2.0
#include "program/guard/reach.h"

#include <utility>

namespace firebreak::guard {

void Reach::note(os::AddressRange range, const CUmemAccessDesc& rights) {
  os::AddressSet& reached = places_[{static_cast<int>(rights.location.type), rights.location.id}];
  if (rights.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    reached.remove(range);
  } else {
    reached.add(range);
  }
}

void Reach::forget(os::AddressRange range) {
  for (auto& [place, reached] : places_) reached.remove(range);
}

std::vector<os::AddressRange> Reach::unreached_of(os::AddressRange range) const {
  std::vector<os::AddressRange> unreached{range};
  for (const auto& [place, reached] : places_) {
    std::vector<os::AddressRange> left;
    for (const os::AddressRange& part : unreached) {
      const auto missing = reached.missing_of(part);
      left.insert(left.end(), missing.begin(), missing.end());
    }
    unreached = std::move(left);
  }
  return unreached;
}

}  // namespace firebreak::guard
