// SPDX-License-Identifier: Apache-2.0
#include "os/device_range.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Status map_device_range(int device, AddressRange range, Occupant occupant) {
  void* wanted = pointer_to(range.begin);
  const int fixed = occupant == Occupant::Nobody ? MAP_FIXED_NOREPLACE : MAP_FIXED;
  void* mapped = mmap(wanted, range.size_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | fixed, device,
                      static_cast<off_t>(range.begin));
  if (mapped == MAP_FAILED && errno == EEXIST) {
    return fail(ErrorCode::Unavailable, "something is mapped at these addresses");
  }
  if (mapped == MAP_FAILED) return fail_errno("mmap of a device's addresses", errno);
  if (mapped != wanted) {  // a kernel older than MAP_FIXED_NOREPLACE takes the address for a wish
    munmap(mapped, range.size_bytes());
    return fail(ErrorCode::Unavailable, "something is mapped at these addresses");
  }
  if (mprotect(mapped, range.size_bytes(), PROT_NONE) == 0) return {};
  const auto failed = fail_errno("mprotect of a device's addresses", errno);
  munmap(mapped, range.size_bytes());
  return failed;
}

Status hold_range(AddressRange range) {
  void* held = mmap(pointer_to(range.begin), range.size_bytes(), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (held == MAP_FAILED) return fail_errno("mmap of a placeholder", errno);
  return {};
}

std::uint64_t lowest_mappable_address() {
  std::ifstream file("/proc/sys/vm/mmap_min_addr");
  std::uint64_t lowest = 0;
  return file >> lowest && lowest > 0 ? lowest : 0x10000;
}

bool may_map_page_zero() {
  void* mapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  munmap(mapped, 4096);
  return mapped == nullptr;
}

}  // namespace firebreak::os
