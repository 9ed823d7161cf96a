// SPDX-License-Identifier: Apache-2.0
/// Many random launches under the oracle, counted.
#pragma once

#include <cstdint>
#include <string>

namespace firebreak::idempotency {

struct RandomLaunchOptions {
  std::uint64_t kernel_count = 250;
  std::uint64_t launches_per_kernel = 4;
  std::uint64_t seed = 0;
};

struct RandomLaunchCounts {
  std::uint64_t launches = 0;          ///< that ran to their end
  std::uint64_t other_ends = 0;        ///< faulted, or did not end
  std::uint64_t truly_idempotent = 0;  ///< by their trace
  std::uint64_t called_idempotent = 0;
  std::uint64_t redone = 0;  ///< torn runs that were done again and came out equal
  std::string problem;       ///< the first: what is wrong, and with which kernel; empty: nothing
};

/// Stops at the first problem.
RandomLaunchCounts check_random_launches(const RandomLaunchOptions& options);

std::string to_text(const RandomLaunchCounts& counts);

}  // namespace firebreak::idempotency
