// SPDX-License-Identifier: Apache-2.0
/// The driver's own GPU virtual addresses, which are this process's too: as CUDA does, it keeps the CPU from
/// mapping anything else there, and takes none where the CPU has something. What the CPU has, it asks Linux:
/// once at its start, by reading /proc/self/maps, and later whenever it wants addresses.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "ground/os/addresses.h"
#include "ground/os/memory.h"
#include "softgpu/driver/address_ranges.h"

namespace firebreak::softgpu::driver {

/// Thread safe.
class DriverAddresses {
 public:
  DriverAddresses();
  /// Takes a range as AddressRanges::take does. Where Linux refuses the placeholder (a sanitizer's own
  /// addresses, the lowest page), the range is numbers alone.
  std::optional<AddressRange> take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                   std::uint64_t hint);
  /// Takes away whatever the process has mapped there meanwhile.
  void give(std::uint64_t begin, std::uint64_t size_bytes);

 private:
  /// Returns where the first thing that is in the way of the range ends. Addresses that can be had as a
  /// placeholder are not in the way.
  std::optional<std::uint64_t> obstacle(const AddressRange& range);

  std::vector<os::MappedRegion> mapped_at_start_;
  std::mutex mutex_;  ///< guards what follows; before that of the ranges
  AddressRanges ranges_;
  std::map<std::uint64_t, os::Mapping> placeholders_;  // placeholders by address
};

}  // namespace firebreak::softgpu::driver
