// SPDX-License-Identifier: Apache-2.0
/// The sampler as a tenant. Its state rule: latents are updated in place, so a step that was cut short leaves
/// latents that belong to no step. Every step therefore ends by copying them, in stream order and before its
/// commit, to snapshot[step % 2], and whoever takes over restores them from the snapshot of the last
/// committed step. The step in flight writes the other snapshot, never that one.
#pragma once

#include <optional>
#include <string_view>

#include "workloads/common/options.h"
#include "workloads/common/step_state.h"
#include "workloads/common/workload.h"
#include "workloads/denoise/presets.h"
#include "workloads/denoise/sampler.h"

namespace firebreak::workloads::denoise {

/// The PTX of denoise.cu, as built.
std::string_view ptx();

class DenoiseWorkload final : public Workload {
 public:
  /// `steps` is at least 1.
  static Result<std::unique_ptr<Workload>> create(const Gpu& gpu, const Preset& preset, std::uint64_t steps,
                                                  std::uint64_t seed);
  /// The same from the command line.
  static Result<std::unique_ptr<Workload>> create_from(const Gpu& gpu, const Options& options);

  std::uint64_t last_step() const override { return steps_; }
  Status allocate(Memory& kept, Memory& scratch) override;
  Status warm_up(const Gpu& gpu) const override;
  Status move_to(const Gpu& gpu) override;
  Status queue_step(const Gpu& gpu, std::uint64_t step) override;
  std::span<const std::byte> state() const override { return state_.bytes(); }
  Status take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> state) override;
  /// A picture as PPM (P6).
  Result<std::string> output(const Gpu& gpu) override;

 private:
  DenoiseWorkload(Kernels kernels, const Preset& preset, std::uint64_t steps, std::uint64_t seed);

  Kernels kernels_;
  Preset preset_;
  std::uint64_t steps_;
  std::uint64_t seed_;
  StepState state_;
  std::optional<Sampler> sampler_;
};

}  // namespace firebreak::workloads::denoise
