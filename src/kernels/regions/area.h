// SPDX-License-Identifier: Apache-2.0
/// The effects of copies and fills.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/access/effects.h"
#include "kernels/access/launch.h"

namespace firebreak::regions {

/// Rows of GPU memory.
struct Area {
  std::uint64_t address = 0;
  std::uint64_t width_bytes = 0;
  std::uint64_t pitch_bytes = 0;  ///< distance from row to row; for one row it does not matter
  std::uint64_t rows = 1;
};

/// Returns the effects of a copy from GPU memory to GPU memory. `memory` is as in access::LaunchArguments. An
/// area that is not in it is unknown.
access::OperationEffects copy_effects(const Area& to, const Area& from,
                                      std::span<const access::MemoryRange> memory);
/// A fill, or a copy from the host, whose bytes are kept elsewhere.
access::OperationEffects fill_effects(const Area& to, std::span<const access::MemoryRange> memory);
/// Returns the effects of an operation of which nothing is known.
access::OperationEffects unknown_effects();

}  // namespace firebreak::regions
