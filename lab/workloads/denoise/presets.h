// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/common/options.h"
#include "workloads/denoise/denoise_shape.h"

namespace firebreak::workloads::denoise {

struct Preset {
  Shape shape;
  std::uint64_t steps = 0;
};

/// For the software GPU: some milliseconds a step.
inline constexpr Preset small_preset{.shape = {.width = 32, .height = 32, .channels = 4, .blocks = 1},
                                     .steps = 40};

/// For a real GPU.
inline constexpr Preset medium_preset{.shape = {.width = 256, .height = 256, .channels = 32, .blocks = 3},
                                      .steps = 500};

/// What a standby warms up with: every kernel, next to no memory.
inline constexpr Preset warm_up_preset{.shape = {.width = 4, .height = 4, .channels = 4, .blocks = 1},
                                       .steps = 2};

constexpr const Preset& preset_of(Size size) { return size == Size::Small ? small_preset : medium_preset; }

}  // namespace firebreak::workloads::denoise
