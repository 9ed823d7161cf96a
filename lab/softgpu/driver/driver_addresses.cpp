// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/driver_addresses.h"

#include <utility>

#include "os/addresses.h"
#include "os/self.h"

namespace firebreak::softgpu::driver {

namespace {

/// The thread sanitizer keeps most addresses for itself, also those that a program wants for its memory on
/// the GPU.
#ifdef __SANITIZE_THREAD__
constexpr bool cpu_counts = false;
#else
constexpr bool cpu_counts = true;
#endif

/// Where the first thing that the CPU has mapped in the range ends.
std::optional<std::uint64_t> mapped_by_cpu(const AddressRange& range) {
  if (!cpu_counts) return std::nullopt;
  const auto regions = os::memory_map_within(os::own_pid(), range.begin, range.end());
  return regions && !regions->empty() ? std::optional(regions->front().end) : std::nullopt;
}

}  // namespace

std::optional<AddressRange> DriverAddresses::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                                  std::uint64_t hint) {
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.take(size_bytes, alignment_bytes, hint, mapped_by_cpu);
  if (!range) return range;
  if (!cpu_counts) return range;
  auto placeholder = os::Mapping::placeholder(range->begin, range->size_bytes);
  if (placeholder) placeholders_.insert_or_assign(range->begin, std::move(*placeholder));
  return range;
}

void DriverAddresses::give(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (ranges_.give(begin, size_bytes)) placeholders_.erase(begin);
}

}  // namespace firebreak::softgpu::driver
