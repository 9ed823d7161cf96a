// SPDX-License-Identifier: Apache-2.0
/// A range of GPU addresses as the pieces of host memory behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "softgpu/driver/gpu_control.h"
#include "softgpu/driver/work.h"
#include "softgpu/interpreter/address_space.h"

namespace firebreak::softgpu::driver {

/// One side of a copy: a GPU address range, or plain host memory that the GPU cannot address.
struct MemorySide {
  std::uint64_t address = 0;
  bool on_gpu = true;
  /// Keeps plain host memory alive until the copy ran (a staging buffer), or null.
  std::shared_ptr<void> staging;
};

/// The contiguous host bytes at the address, at most `size_bytes`, and who keeps them alive.
struct MemoryPiece {
  std::span<std::byte> bytes;
  std::shared_ptr<void> keep_alive;
};

/// The unit whose access it is: only the SM's faults can be replayed.
enum class Engine { Sm, Copy, Host };

/// Empty: a fault, since nothing is mapped, or without the rights for it.
std::optional<MemoryPiece> find_piece(const AddressSpace& space, const MemorySide& side,
                                      std::uint64_t offset_bytes, std::uint64_t size_bytes, GpuAccess access,
                                      Engine engine);

/// True when the driver has mapped something at the address: addresses that it knows nothing of its calls
/// refuse.
bool is_mapped(const AddressSpace& space, std::uint64_t address);

/// The same of a whole range.
bool is_accessible(const AddressSpace& space, std::uint64_t address, std::uint64_t size_bytes);

/// Copies as the copy engine does: piece by piece, so that a fault or a stop leaves what was copied by then.
WorkOutcome copy_bytes(const AddressSpace& space, GpuControl& control, const MemorySide& destination,
                       const MemorySide& source, std::uint64_t size_bytes);

/// Fills with a repeated pattern of 1, 2 or 4 bytes.
WorkOutcome fill_bytes(const AddressSpace& space, GpuControl& control, std::uint64_t address,
                       std::span<const std::byte> pattern, std::uint64_t size_bytes);

}  // namespace firebreak::softgpu::driver
