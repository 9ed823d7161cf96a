// SPDX-License-Identifier: Apache-2.0
/// Sequences of launches, copies and fills on the software GPU, from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "idempotency/random_kernel.h"
#include "idempotency/traced_gpu.h"
#include "kernels/access/effects.h"
#include "kernels/regions/area.h"

namespace firebreak::idempotency {

enum class StepKind : std::uint8_t { Launch, Copy, Fill };

struct SequenceStep {
  StepKind kind = StepKind::Launch;
  std::size_t kernel = 0;  ///< into the module's functions
  LaunchCase launch;
  regions::Area to;
  regions::Area from;
  std::byte value{};
};

/// A module on a GPU of its own.
struct SequenceBench {
  Status load(const std::string& text);

  ptx::Module module;
  std::vector<access::KernelSummary> summaries;
  TracedGpu gpu;
  RandomBuffers buffers;
};

std::uint64_t random_save_limit(std::mt19937_64& random);
inline constexpr std::uint64_t most_step_accesses = 30'000;

/// PTX text of several random kernels, one that adds in place, one that counts by atomics, and one that
/// scatters.
std::string make_sequence_kernels(std::mt19937_64& random);
/// Steps of such a module with that many kernels.
std::vector<SequenceStep> make_sequence(const RandomBuffers& buffers, std::size_t kernel_count,
                                        std::mt19937_64& random);

/// Stops after that many accesses; a copy's or a fill's are its bytes. `order`: as TracedGpu::run.
Result<TracedRun> run_step(TracedGpu& gpu, const SequenceStep& step, std::uint64_t most_accesses,
                           std::uint64_t order);
access::OperationEffects effects_of(const TracedGpu& gpu, const SequenceStep& step,
                                    const std::vector<access::KernelSummary>& summaries,
                                    access::DecisionWorkspace& workspace);

}  // namespace firebreak::idempotency
