// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/host_files.h"

#include <algorithm>
#include <iterator>

#include "ground/os/addresses.h"
#include "ground/os/descriptors.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "softgpu/machine/mps_protocol.h"

namespace firebreak::softgpu::driver {
namespace {

constexpr Milliseconds send_timeout(1'000);

std::optional<os::MappedRegion> region_at(std::uint64_t address) {
  const auto regions = os::memory_map(os::own_pid());
  if (!regions) return std::nullopt;
  const auto found = std::ranges::find_if(*regions, [address](const os::MappedRegion& region) {
    return address >= region.begin && address < region.end;
  });
  const bool of_file = found != regions->end() && found->file != os::FileIdentity{};
  return of_file ? std::optional(*found) : std::nullopt;
}

/// One of our descriptors of that file, or -1.
int descriptor_of(const os::FileIdentity& file) {
  os::RealKernel kernel;
  int found = -1;
  (void)os::visit_descriptors(kernel, os::own_pid(), [&](int number, const std::string& target) {
    const bool is_memory = target.starts_with("/memfd:");
    if (is_memory && os::identity_of(number).value_or(os::FileIdentity{}) == file) found = number;
    return found < 0;
  });
  return found;
}

}  // namespace

void HostFiles::add(os::Socket& server, std::uint64_t begin, std::uint64_t size_bytes) {
  const auto region = region_at(begin);
  const int descriptor = region ? descriptor_of(region->file) : -1;
  if (descriptor < 0) return;
  const std::lock_guard lock(mutex_);
  const mps::Request request{mps::RequestKind::HostMemory, {}};
  if (!mps::send_request_with(server, request, std::span(&descriptor, 1), send_timeout)) return;
  pieces_[begin] = {size_bytes, {files_++, region->offset_bytes + (begin - region->begin)}};
}

std::optional<WordPlace> HostFiles::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return std::nullopt;
  const auto& [begin, piece] = *std::prev(after);
  if (address - begin >= piece.size_bytes) return std::nullopt;
  return WordPlace{piece.place.file, piece.place.offset_bytes + (address - begin)};
}

}  // namespace firebreak::softgpu::driver
