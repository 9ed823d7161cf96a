// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/memory_port.h"

#include <utility>

#include "softgpu/interpreter/generic_windows.h"

namespace firebreak::softgpu {

void MemoryPort::flush() {
  generation_ = space_.generation();
  cache_.fill(Translation{});
  use(Translation{});
}

void MemoryPort::use(const Translation& translation) {
  begin_ = translation.begin;
  span_ = translation.end - translation.begin;
  host_ = translation.host;
  writable_ = translation.access == PageAccess::ReadWrite;
}

std::byte* MemoryPort::find_slow(std::uint64_t address, std::uint64_t size, bool write) {
  const auto fits = [&](const Translation& entry) {
    return address >= entry.begin && address < entry.end && size <= entry.end - address;
  };
  const auto allows = [&](const Translation& entry) {
    return !write || entry.access == PageAccess::ReadWrite;
  };
  for (const Translation& entry : cache_) {
    if (!fits(entry) || !allows(entry)) continue;
    use(entry);
    return host_ + (address - begin_);
  }
  std::optional<Translation> found = space_.find(address);
  if (!found || !fits(*found) || !allows(*found)) return nullptr;
  Translation& victim = cache_[next_victim_++ % cache_.size()];
  victim = *std::move(found);
  use(victim);
  return host_ + (address - begin_);
}

std::byte* MemoryPort::handle_fault(std::uint64_t address, std::uint64_t size, GpuAccess access, int lane) {
  if (!is_canonical(address)) return nullptr;
  switch (space_.handle_fault({address, access, true}).kind) {
    case FaultAnswer::Kind::Fatal:
      break;
    case FaultAnswer::Kind::Serviced:
      return find(address, size, access != GpuAccess::Load);
    case FaultAnswer::Kind::Sparse:
      SparseWord& word = sparse_[static_cast<std::size_t>(lane)];
      word = {};
      return word.bytes.data();
  }
  return nullptr;
}

GpuFaultKind MemoryPort::reason(std::uint64_t address, std::uint64_t size) const {
  if (!is_canonical(address)) return GpuFaultKind::OutOfRangeAddress;
  const std::optional<Translation> found = space_.find(address);
  if (!found || size > found->end - address) return GpuFaultKind::UnmappedAccess;
  return GpuFaultKind::ReadOnlyViolation;
}

}  // namespace firebreak::softgpu
