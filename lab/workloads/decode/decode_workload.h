// SPDX-License-Identifier: Apache-2.0
/// The decoder as a tenant. Its state rule: a step writes the cache at its own positions and its own row of
/// the token slots, and both follow from committed state alone, so a step that was cut short is repeated as a
/// whole. Block table and sequence lengths travel as forward state.
#pragma once

#include <optional>
#include <string_view>

#include "workloads/common/options.h"
#include "workloads/common/workload.h"
#include "workloads/decode/model.h"
#include "workloads/decode/presets.h"

namespace firebreak::workloads::decode {

/// The PTX of decode.cu, as built.
std::string_view ptx();

class DecodeWorkload final : public Workload {
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
  std::span<const std::byte> state() const override { return schedule_.state_bytes(); }
  /// Step 0 commits the state that it begins with.
  std::optional<std::span<const StateRange>> changed() const override {
    if (schedule_.changed().empty()) return std::nullopt;
    return schedule_.changed();
  }
  Status take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> state) override;
  Result<std::string> output(const Gpu& gpu) override;

 private:
  DecodeWorkload(Kernels kernels, const Preset& preset, std::uint64_t steps, std::uint64_t seed)
      : kernels_(std::move(kernels)),
        preset_(preset),
        steps_(steps),
        seed_(seed),
        schedule_(preset.shape, preset.traffic, seed) {}

  Kernels kernels_;
  Preset preset_;
  std::uint64_t steps_;
  std::uint64_t seed_;
  Schedule schedule_;
  std::optional<Model> model_;
};

}  // namespace firebreak::workloads::decode
