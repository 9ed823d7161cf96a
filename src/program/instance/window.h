// SPDX-License-Identifier: Apache-2.0
/// The window of addresses that every instance of the driver has in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firebreak::instance {

/// Reserved whole by every instance. An H100 gave 256 GiB there to each of several instances of one process.
/// An H100 under MPS and an H200 gave 4 TiB to one instance, at once and without memory for it (driver
/// 580.159.04). Nothing of Linux's or of CUDA's own choosing lies there. Who maps memory by itself
/// reserves 1.125 times the GPU's, several times.
inline constexpr std::uint64_t window_begin = 0x5000'0000'0000;
inline constexpr std::uint64_t window_bytes = std::uint64_t{4} << 40;

constexpr bool is_in_window(std::uint64_t address) { return address - window_begin < window_bytes; }

/// The text of /proc/self/maps without the window.
std::string without_window(std::string_view maps);

}  // namespace firebreak::instance
