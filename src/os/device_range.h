// SPDX-License-Identifier: Apache-2.0
/// Ranges of this process's own addresses that a device driver serves: no memory of the CPU's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace firebreak::os {

/// Addresses [begin, end).
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size_bytes() const { return end - begin; }
  bool operator==(const AddressRange&) const = default;
};

/// What may be there already when a device is mapped.
enum class Occupant {
  Nobody,       ///< then something that is there is a failure
  Placeholder,  ///< addresses that were only reserved, so that nobody else gets them: taken over
};

/// Maps a device at exactly `range`, the offset in the device being the address, and takes the CPU every
/// right to it: a stray access of the CPU's stays the SIGSEGV that it was. Whole pages. Unavailable:
/// something is mapped there that may not be.
Status map_device_range(int device, AddressRange range, Occupant occupant);

/// Keeps the range for whoever owns its addresses, with nothing behind it; whatever was mapped there is no
/// more.
Status hold_range(AddressRange range);

/// The first address that this kernel lets an ordinary process map (vm.mmap_min_addr); 64 KiB where it does
/// not say.
std::uint64_t lowest_mappable_address();

/// Whether this process may map page 0, which takes CAP_SYS_RAWIO, and nothing is there.
bool may_map_page_zero();

}  // namespace firebreak::os
