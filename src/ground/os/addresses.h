// SPDX-License-Identifier: Apache-2.0
/// The address space of a process: what is mapped where, what is free, and what a device has mapped.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/file.h"

namespace firebreak::os {

// --- device range
// Ranges of this process's own addresses that a device driver serves: no memory of the CPU's.

/// Addresses [begin, end).
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size_bytes() const { return end - begin; }
  bool operator==(const AddressRange&) const = default;
};

/// Says what may be there already when a device is mapped.
enum class Occupant {
  Nobody,       ///< nothing may be there; whatever is there is a failure
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

/// True when this process may map page 0, which takes CAP_SYS_RAWIO, and nothing is there.
bool may_map_page_zero();

// --- address room
// What Linux still wants to do with addresses of this process that nobody has mapped.

/// Returns the ranges that the heap (brk) and the first thread's stack may grow into.
std::vector<AddressRange> room_to_grow();

/// Returns what is left of RLIMIT_AS; empty: there is no such limit.
std::optional<std::uint64_t> address_space_left();

/// Nothing is mapped there any more.
void release_range(AddressRange range);

// --- memory map
// What a process has mapped where: /proc/PID/maps.

struct MappedRegion {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< one past the last byte
  std::uint64_t offset_bytes = 0;
  FileIdentity file;
  bool writable = false;  ///< the CPU may write there
};

/// Returns all regions of a process, by address. The kernel gives them out one page of text at a time, so
/// what changes meanwhile may show or not.
Result<std::vector<MappedRegion>> memory_map(pid_t pid);

/// Returns the regions that have an address in [begin, end). From Linux 6.11 on it costs as much as there are
/// such (PROCMAP_QUERY, include/uapi/linux/fs.h), however many others the process has; before, all are read.
Result<std::vector<MappedRegion>> memory_map_within(pid_t pid, std::uint64_t begin, std::uint64_t end);

/// The same from the text of such a file; lines that are none are left out.
std::vector<MappedRegion> parse_memory_map(std::string_view text);

/// A part of the address space with what /proc/self/maps says that it is; empty: nothing of a file.
struct NamedRegion {
  AddressRange range;
  std::string name;
};
/// Of this process, by address. Empty where it is not to be read.
std::vector<NamedRegion> named_regions();
/// The same from the text of that file; lines that are none are left out.
std::vector<NamedRegion> parse_named_regions(std::string_view text);

}  // namespace firebreak::os
