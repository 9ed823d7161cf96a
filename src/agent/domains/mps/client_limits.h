// SPDX-License-Identifier: Apache-2.0
/// Limits of what MPS lets one client have of the GPU. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::mps {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// 0: no limit. They are words in the client's environment, which NVIDIA's library in the client keeps to: a
/// bound for programs that are wrong, not for ones that are hostile.
struct ClientLimits {
  /// Share of the GPU's SMs; MPS rounds down to what the hardware can split (25 % of 132 were 32 on an H100).
  std::uint32_t sm_percent = 0;
  /// Limit of device memory for all that the process has there, CUDA's own included: of 1024 MiB an H100 left
  /// 879 to the program, and with 300 MiB no context could be made at all ("out of memory").
  std::uint32_t memory_mib = 0;
  friend bool operator==(const ClientLimits&, const ClientLimits&) = default;
};

/// InvalidArgument: more than 100 percent.
Status check_limits(const ClientLimits& limits);

/// NVIDIA's variables for a client that sees one GPU; none where nothing is limited.
Environment environment_of(const ClientLimits& limits);

}  // namespace firebreak::mps
