// SPDX-License-Identifier: Apache-2.0
/// Special registers that do not change while a block runs, as operands: 32 lanes each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/ptx/opcode.h"

namespace firebreak::softgpu {

/// Values of 32 bits first, then those of 64.
struct SpecialValues {
  using Narrow = std::array<std::uint32_t, 32>;
  static constexpr std::size_t narrow_count = 64;
  alignas(64) std::array<Narrow, narrow_count> narrow{};
  std::array<std::uint64_t, 32> grid_id{};

  Narrow& operator[](ptx::SpecialRegister which) { return narrow[static_cast<std::size_t>(which)]; }
  void fill(ptx::SpecialRegister which, std::uint32_t value) { (*this)[which].fill(value); }
};

/// This says where a special register lies in SpecialValues, and its width; it is nothing for those that are
/// read anew every time (clocks and timers).
struct SpecialPlace {
  std::uint32_t offset_bytes = 0;
  std::uint32_t width_bytes = 4;
};
std::optional<SpecialPlace> place_of(ptx::SpecialRegister which);

}  // namespace firebreak::softgpu
