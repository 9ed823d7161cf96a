// SPDX-License-Identifier: Apache-2.0
/// Kernels of the second generator on a GPU: traced, torn and done again.
#pragma once

#include <cstdint>

#include "ground/base/result.h"
#include "idempotency/replay.h"

namespace firebreak::idempotency {

struct AdversarialReplay {
  std::uint64_t kernels = 200;
  std::uint64_t seed = 0;
  std::uint64_t begin = 0;  ///< kernels before that one are left out: they have been played
};

/// Prints a line of JSON before each kernel ({"begin": number}) and one after it. Constant memory is not
/// written through its alias here: what a GPU makes of that may end the process.
Status replay_adversarial(const AdversarialReplay& options, const ReplayOptions& replay);

}  // namespace firebreak::idempotency
