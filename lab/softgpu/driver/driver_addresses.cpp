// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/driver_addresses.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "ground/os/addresses.h"
#include "ground/os/self.h"

namespace firebreak::softgpu::driver {

namespace {

/// The thread sanitizer keeps most addresses for itself, also those that a program wants for its memory on
/// the GPU.
#ifdef __SANITIZE_THREAD__
constexpr bool cpu_counts = false;
#else
constexpr bool cpu_counts = true;
#endif

/// Reads them as libcuda does: through the C library's own file.
std::string own_maps() {
  std::string text;
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  if (file == nullptr) return text;
  std::array<char, 4096> piece{};
  for (std::size_t count = 0; (count = std::fread(piece.data(), 1, piece.size(), file)) > 0;)
    text.append(piece.data(), count);
  std::fclose(file);
  return text;
}

}  // namespace

DriverAddresses::DriverAddresses() {
  if (cpu_counts) mapped_at_start_ = os::parse_memory_map(own_maps());
}

std::optional<std::uint64_t> DriverAddresses::obstacle(const AddressRange& range) {
  if (!cpu_counts) return std::nullopt;
  const auto regions = os::memory_map_within(os::own_pid(), range.begin, range.end());
  if (!regions || regions->empty()) return std::nullopt;
  const std::uint64_t end = regions->front().end;
  const bool was_there = std::ranges::any_of(mapped_at_start_, [&](const os::MappedRegion& region) {
    return region.begin < range.end() && region.end > range.begin;
  });
  if (was_there) return end;
  auto placeholder = os::Mapping::placeholder(range.begin, range.size_bytes);
  if (!placeholder) return end;
  placeholders_.insert_or_assign(range.begin, std::move(*placeholder));
  return std::nullopt;
}

std::optional<AddressRange> DriverAddresses::take(std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                                                  std::uint64_t hint) {
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.take(size_bytes, alignment_bytes, hint,
                                  [this](const AddressRange& wanted) { return obstacle(wanted); });
  if (!range) return range;
  if (!cpu_counts || placeholders_.contains(range->begin)) return range;
  auto placeholder = os::Mapping::placeholder(range->begin, range->size_bytes);
  if (placeholder) placeholders_.insert_or_assign(range->begin, std::move(*placeholder));
  return range;
}

void DriverAddresses::give(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (ranges_.give(begin, size_bytes)) placeholders_.erase(begin);
}

}  // namespace firebreak::softgpu::driver
