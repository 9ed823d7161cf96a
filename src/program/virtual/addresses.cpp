// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/addresses.h"

#include <iterator>

namespace firebreak::virtual_driver {

Addresses::Addresses(std::uint64_t begin, std::uint64_t size_bytes)
    : begin_(begin), end_(begin + size_bytes) {}

std::optional<std::uint64_t> Addresses::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
  const auto aligned = [&](std::uint64_t at) {
    return (at + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  };
  std::uint64_t at = aligned(begin_);
  for (const auto& [begin, size] : taken_) {
    if (begin >= at && begin - at >= size_bytes) break;
    if (begin + size > at) at = aligned(begin + size);
  }
  if (at > end_ || end_ - at < size_bytes) return std::nullopt;
  taken_[at] = size_bytes;
  return at;
}

bool Addresses::give(std::uint64_t begin) { return taken_.erase(begin) != 0; }

std::optional<Addresses::Range> Addresses::find(std::uint64_t address) const {
  const auto after = taken_.upper_bound(address);
  if (after == taken_.begin()) return std::nullopt;
  const auto& [begin, size_bytes] = *std::prev(after);
  if (address - begin >= size_bytes) return std::nullopt;
  return Range{begin, size_bytes};
}

}  // namespace firebreak::virtual_driver
