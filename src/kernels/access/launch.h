// SPDX-License-Identifier: Apache-2.0
/// The host's knowledge of one launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace firebreak::access {

/// A range of GPU memory that the process has. Two ranges may be the same memory: then they have the same
/// `canonical_address`, which is the address of one of them.
struct MemoryRange {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t canonical_address = 0;
};

/// Borrowed for the time of a call.
struct LaunchArguments {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   ///< blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< threads
  std::span<const std::byte> parameters;        ///< packed as PTX says: C layout
  std::span<const MemoryRange> memory;          ///< memory by address, none overlapping another
  /// Addresses by the module's variables: where they lie; 0 or missing: not known.
  std::span<const std::uint64_t> variable_addresses;
};

}  // namespace firebreak::access
