// SPDX-License-Identifier: Apache-2.0
/// One launch under the three questions of the first oracle: did it go only where it was predicted to, is
/// what was called idempotent so by its trace, and does a torn run, done again, come out equal?
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "access/decision.h"
#include "idempotency/traced_gpu.h"
#include "idempotency/truth.h"

namespace firebreak::idempotency {

/// Borrows from both.
access::LaunchArguments arguments_of(const TracedGpu& gpu, const LaunchCase& launch);

struct LaunchReport {
  access::Decision decision;
  TraceTruth truth;
  RunEnd end = RunEnd::Completed;
  std::uint64_t access_count = 0;
  std::uint64_t certain_bytes = 0;  ///< that it was certain to write, some maybe twice
  bool is_free_of_races = false;    ///< was called so
  std::uint32_t redo_count = 0;     ///< torn runs that were done again
  std::string problem;              ///< what must not be; empty: all is well
};

/// The GPU's memory is what it was before when this returns. Fails only where the launch cannot run at all.
Result<LaunchReport> check_launch(TracedGpu& gpu, const access::KernelSummary& summary,
                                  const LaunchCase& launch, access::DecisionWorkspace& workspace,
                                  std::mt19937_64& random);

}  // namespace firebreak::idempotency
