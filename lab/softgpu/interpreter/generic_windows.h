// SPDX-License-Identifier: Apache-2.0
/// The fixed GPU virtual ranges behind generic addresses of shared, local and parameter memory, and of code.
/// They lie in the upper half of the canonical addresses, where no process can map host memory and no driver
/// puts device memory; code lies outside the canonical addresses, so that a data access to it is an
/// OutOfRangeAddress.
#pragma once

#include <cstdint>

namespace firebreak::softgpu {

inline constexpr std::uint64_t window_size_bytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t shared_window_base = 0xFFFF'8100'0000'0000;
inline constexpr std::uint64_t local_window_base = 0xFFFF'8200'0000'0000;
inline constexpr std::uint64_t parameter_window_base = 0xFFFF'8300'0000'0000;

/// The address of function `i` of a module is this plus i * code_address_step.
inline constexpr std::uint64_t code_base = 0x7C0D'E000'0000'0000;
inline constexpr std::uint64_t code_address_step = 16;

constexpr bool in_window(std::uint64_t address, std::uint64_t base) {
  return address - base < window_size_bytes;
}

/// True when bits 63 to 47 are all equal: what an address may look like at all.
constexpr bool is_canonical(std::uint64_t address) {
  const std::uint64_t top = address >> 47;
  return top == 0 || top == 0x1FFFF;
}

}  // namespace firebreak::softgpu
