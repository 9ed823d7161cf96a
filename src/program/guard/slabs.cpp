// SPDX-License-Identifier: Apache-2.0
#include "program/guard/slabs.h"

#include <iterator>

#include "ground/base/units.h"

namespace firebreak::guard {

void Slabs::add(std::uint64_t begin, std::uint64_t size_bytes) {
  slabs_.emplace(begin, Slab{begin + size_bytes, {}});
}

std::optional<std::uint64_t> Slabs::take(std::uint64_t size_bytes) {
  const std::uint64_t size = round_up(size_bytes, alignment_bytes);
  for (auto& [begin, slab] : slabs_) {
    std::uint64_t address = begin;
    for (const auto& [taken_begin, taken_end] : slab.taken) {
      if (taken_begin - address >= size) break;
      address = taken_end;
    }
    if (slab.end - address < size) continue;
    slab.taken.emplace(address, address + size);
    return address;
  }
  return {};
}

std::optional<Slabs::Given> Slabs::give(std::uint64_t address) {
  const auto next = slabs_.upper_bound(address);
  if (next == slabs_.begin()) return {};
  const auto slab = std::prev(next);
  const auto found = slab->second.taken.find(address);
  if (found == slab->second.taken.end()) return {};
  Given given{found->second - found->first, {}};
  slab->second.taken.erase(found);
  if (slab->second.taken.empty()) {
    given.empty = slab->first;
    slabs_.erase(slab);
  }
  return given;
}

}  // namespace firebreak::guard
