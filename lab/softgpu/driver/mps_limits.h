// SPDX-License-Identifier: Apache-2.0
/// The limits that an MPS client's environment puts on its use of the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firebreak::softgpu::driver {

/// "0=1G,1=512MB": the bytes of the first device; empty where it is not named or cannot be understood, which
/// NVIDIA's library passes over as well.
std::optional<std::uint64_t> parse_memory_limit(std::string_view text);

/// Returns the share of so many SMs, rounded down but never to none; all of them where the text is no share.
int sms_of_share(std::string_view percentage, int all);

/// Reads it from this process's environment.
std::optional<std::uint64_t> memory_limit_from_environment();
int sm_count_from_environment(int all);

}  // namespace firebreak::softgpu::driver
