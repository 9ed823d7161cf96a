// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workloads/common/options.h"

namespace firebreak::workloads::scribble {

struct Preset {
  std::uint32_t words = 0;   ///< of 8 bytes, of each region
  std::uint32_t rounds = 0;  ///< in which a step's kernel writes them
  std::uint64_t steps = 0;
};

/// For the software GPU: a millisecond or two a step.
inline constexpr Preset small_preset{.words = 256, .rounds = 8, .steps = 100};

/// For a real GPU: with twenty of them beside each other more than its second-level cache holds.
inline constexpr Preset medium_preset{.words = 1 << 20, .rounds = 4, .steps = 2000};

constexpr const Preset& preset_of(Size size) { return size == Size::Small ? small_preset : medium_preset; }

}  // namespace firebreak::workloads::scribble
