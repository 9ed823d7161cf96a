// SPDX-License-Identifier: Apache-2.0
/// One launch under the questions of the first oracle: did it go only where it was predicted to, is what was
/// called idempotent so by its trace, does another order of threads come out equal where that was said, and
/// does a torn run, done again in any order, come out as one whole run in that order?
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "idempotency/traced_gpu.h"
#include "idempotency/truth.h"
#include "kernels/access/decision.h"
#include "kernels/access/effects.h"

namespace firebreak::idempotency {

/// Borrows from both.
access::LaunchArguments arguments_of(const TracedGpu& gpu, const LaunchCase& launch);

/// What went where it was not predicted to go, in words; empty: nothing did.
std::string find_unpredicted(const access::KernelSummary& summary, const access::LaunchArguments& arguments,
                             std::span<const softgpu::ObservedAccess> accesses,
                             access::DecisionWorkspace& workspace);
/// Of a launch that ran to its end: what was said of it for certain and is not so, in words.
std::string find_uncertain(const access::OperationEffects& effects,
                           std::span<const softgpu::ObservedAccess> accesses);

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
