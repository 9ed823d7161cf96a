// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/memory_pieces.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/memory.h"

namespace firebreak::softgpu::driver {

namespace {

// How much is moved between two looks at whether the GPU goes on.
constexpr std::uint64_t step_bytes = mib;

WorkFault copy_fault(std::uint64_t address, GpuAccess access) {
  return {FaultCause::CopyEngine, access, address};
}

/// The driver fills with a kernel of its own (seen on an H100), which faults as any kernel does.
WorkFault fill_fault(std::uint64_t address) {
  return {FaultCause::UnmappedAccess, GpuAccess::Store, address};
}

std::optional<Translation> find_allowed(const AddressSpace& space, std::uint64_t address, GpuAccess access) {
  auto translation = space.find(address);
  if (translation && access != GpuAccess::Load && translation->access != PageAccess::ReadWrite)
    return std::nullopt;
  return translation;
}

/// Zeros to read, and a place for what is written, which nobody will see.
MemoryPiece sparse_piece(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t sparse_end) {
  constexpr std::uint64_t most_bytes = 65536;
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(std::min({size_bytes, most_bytes, sparse_end - address}));
  return {*bytes, bytes};
}

}  // namespace

std::optional<MemoryPiece> find_piece(const AddressSpace& space, const MemorySide& side,
                                      std::uint64_t offset_bytes, std::uint64_t size_bytes, GpuAccess access,
                                      Engine engine) {
  const std::uint64_t address = side.address + offset_bytes;
  if (!side.on_gpu) return MemoryPiece{{reinterpret_cast<std::byte*>(address), size_bytes}, side.staging};
  auto translation = find_allowed(space, address, access);
  if (!translation) {
    const FaultAnswer answer = space.handle_fault({address, access, engine == Engine::Sm});
    if (answer.kind == FaultAnswer::Kind::Sparse) return sparse_piece(address, size_bytes, answer.sparse_end);
    if (answer.kind == FaultAnswer::Kind::Serviced) translation = find_allowed(space, address, access);
  }
  if (!translation) return std::nullopt;
  const std::uint64_t available_bytes = translation->end - address;
  return MemoryPiece{
      {translation->host + (address - translation->begin), std::min(size_bytes, available_bytes)},
      translation->keep_alive};
}

bool is_mapped(const AddressSpace& space, std::uint64_t address) {
  const auto translation = space.find(address);
  return translation && !translation->managed;
}

bool is_accessible(const AddressSpace& space, std::uint64_t address, std::uint64_t size_bytes) {
  std::uint64_t next = address;
  while (next < address + size_bytes) {
    const auto translation = space.find(next);
    if (!translation || translation->managed) return false;
    next = translation->end;
  }
  return true;
}

namespace {

/// Whole pages of a memory file are given back to Linux, which shows zeros there: memory that is only ever
/// cleared takes none of the machine's.
bool empty_pages(std::span<std::byte> bytes) {
  const std::size_t page_bytes = os::page_size();
  const bool are_whole = reinterpret_cast<std::uintptr_t>(bytes.data()) % page_bytes == 0 &&
                         bytes.size() % page_bytes == 0 && !bytes.empty();
  return are_whole && ::madvise(bytes.data(), bytes.size(), MADV_REMOVE) == 0;
}

}  // namespace

WorkOutcome copy_bytes(const AddressSpace& space, GpuControl& control, const MemorySide& destination,
                       const MemorySide& source, std::uint64_t size_bytes) {
  for (std::uint64_t offset = 0; offset < size_bytes;) {
    if (control.attention.load() != 0 && control.should_stop()) return WorkStopped{};
    const std::uint64_t wanted_bytes = std::min(step_bytes, size_bytes - offset);
    const auto from = find_piece(space, source, offset, wanted_bytes, GpuAccess::Load, Engine::Copy);
    if (!from) return copy_fault(source.address + offset, GpuAccess::Load);
    const auto to =
        find_piece(space, destination, offset, from->bytes.size(), GpuAccess::Store, Engine::Copy);
    if (!to) return copy_fault(destination.address + offset, GpuAccess::Store);
    std::memmove(to->bytes.data(), from->bytes.data(), to->bytes.size());
    offset += to->bytes.size();
  }
  return WorkDone{};
}

WorkOutcome fill_bytes(const AddressSpace& space, GpuControl& control, std::uint64_t address,
                       std::span<const std::byte> pattern, std::uint64_t size_bytes) {
  const bool is_zero = std::ranges::all_of(pattern, [](std::byte each) { return each == std::byte{0}; });
  for (std::uint64_t offset = 0; offset < size_bytes;) {
    if (control.attention.load() != 0 && control.should_stop()) return WorkStopped{};
    const auto to = find_piece(space, {address, true, nullptr}, offset,
                               std::min(step_bytes, size_bytes - offset), GpuAccess::Store, Engine::Sm);
    if (!to) return fill_fault(address + offset);
    offset += to->bytes.size();
    if (is_zero && empty_pages(to->bytes)) continue;
    // Pieces begin and end at multiples of the pattern: mappings are whole pages.
    for (std::size_t at = 0; at < to->bytes.size(); at += pattern.size()) {
      std::memcpy(to->bytes.data() + at, pattern.data(), pattern.size());
    }
  }
  return WorkDone{};
}

}  // namespace firebreak::softgpu::driver
