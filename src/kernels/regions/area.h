// SPDX-License-Identifier: Apache-2.0
/// What copies and fills touch.
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
  std::uint64_t pitch_bytes = 0;  ///< from row to row; of one row it does not matter
  std::uint64_t rows = 1;
};

/// From GPU memory to GPU memory. `memory` is as in access::LaunchArguments. What is not in it is unknown.
access::OperationEffects copy_effects(const Area& to, const Area& from,
                                      std::span<const access::MemoryRange> memory);
/// A fill, or a copy from the host, whose bytes are kept elsewhere.
access::OperationEffects fill_effects(const Area& to, std::span<const access::MemoryRange> memory);
/// What nothing is known of.
access::OperationEffects unknown_effects();

}  // namespace firebreak::regions
