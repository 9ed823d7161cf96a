// SPDX-License-Identifier: Apache-2.0
/// A launch's way to global memory: a few cached translations in front of the AddressSpace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "softgpu/interpreter/address_space.h"
#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu {

/// Used by one thread. Pointers it hands out stay valid until the next refresh().
class MemoryPort {
 public:
  explicit MemoryPort(const AddressSpace& space) : space_(space) {}

  /// Drops the cached translations when a mapping changed since they were made. Once per instruction.
  void refresh() {
    if (space_.generation() != generation_) flush();
  }

  /// Host memory of [address, address + size), or null when it is not mapped, or not for writing.
  std::byte* find(std::uint64_t address, std::uint64_t size, bool write) {
    const std::uint64_t offset = address - begin_;
    if (offset < span_ && size <= span_ - offset && (writable_ || !write)) [[likely]] {
      return host_ + offset;
    }
    return find_slow(address, size, write);
  }

  /// The caller comes here after find() said no: it gets memory for the access all the same, or null when the
  /// fault is fatal. Sparse memory is zero, and each lane has its own.
  std::byte* handle_fault(std::uint64_t address, std::uint64_t size, GpuAccess access, int lane);

  /// Why find() said no.
  GpuFaultKind reason(std::uint64_t address, std::uint64_t size) const;

 private:
  void flush();
  std::byte* find_slow(std::uint64_t address, std::uint64_t size, bool write);
  void use(const Translation& translation);

  const AddressSpace& space_;
  std::uint64_t generation_ = 0;
  // The translation used last, flat for the fast path.
  std::uint64_t begin_ = 0;
  std::uint64_t span_ = 0;
  std::byte* host_ = nullptr;
  bool writable_ = false;
  std::array<Translation, 8> cache_;
  std::size_t next_victim_ = 0;
  struct alignas(32) SparseWord {
    std::array<std::byte, 32> bytes;  // The widest access has this size.
  };
  std::array<SparseWord, 32> sparse_;  // one for each lane
};

}  // namespace firebreak::softgpu
