// SPDX-License-Identifier: Apache-2.0
/// Many random launches under the oracle, counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "idempotency/adversarial_kernel.h"

namespace firebreak::idempotency {

struct RandomLaunchOptions {
  std::uint64_t kernel_count = 250;
  std::uint64_t launches_per_kernel = 4;
  std::uint64_t seed = 0;
  bool is_adversarial = false;          ///< kernels of the second generator, in turns of each kind
  std::optional<AdversarialKind> kind;  ///< of that one alone
  std::uint64_t most_problems = 1;      ///< one kernel is one problem at most; stops after them
};

struct RandomLaunchCounts {
  std::uint64_t launches = 0;          ///< that ran to their end
  std::uint64_t other_ends = 0;        ///< faulted, or did not end
  std::uint64_t truly_idempotent = 0;  ///< by their trace
  std::uint64_t called_idempotent = 0;
  std::uint64_t redone = 0;           ///< torn runs that were done again and came out equal
  std::vector<std::string> problems;  ///< what is wrong, and with which kernel
};

RandomLaunchCounts check_random_launches(const RandomLaunchOptions& options);

std::string to_text(const RandomLaunchCounts& counts);

}  // namespace firebreak::idempotency
