// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace firebreak::softgpu {

/// What the one software GPU calls itself, on every machine.
inline constexpr std::array<std::uint8_t, 16> device_uuid{'f', 'i', 'r', 'e', 'b', 'r', 'e', 'a',
                                                          'k', '-', 's', 'o', 'f', 't', '-', '0'};

}  // namespace firebreak::softgpu
