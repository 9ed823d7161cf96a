// SPDX-License-Identifier: Apache-2.0
/// The adversary of the fence: a tenant that writes a changing pattern, as fast as it can and by every way a
/// process has (kernels, the copy engine, memset, a stream's own write), over all memory that it shares with
/// its standby, and that as successor finds every write that is not its own. Where the fence holds the output
/// is "no stray write", whatever happened: byte for byte what an undisturbed run gives.
///
/// Its state rule: nothing but the finds is ever read by another process, and those are only added to.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "workloads/common/launch_queue.h"
#include "workloads/common/options.h"
#include "workloads/common/step_state.h"
#include "workloads/common/workload.h"
#include "workloads/scribble/presets.h"
#include "workloads/scribble/scribble_shape.h"

namespace firebreak::workloads::scribble {

/// The PTX of scribble.cu, as built.
std::string_view ptx();

class ScribbleWorkload final : public Workload {
 public:
  /// `nonce` tells the writes of one process from those of all others.
  static Result<std::unique_ptr<Workload>> create(const Gpu& gpu, const Preset& preset, std::uint64_t steps,
                                                  std::uint64_t nonce);
  /// The same from the command line, with a nonce of its own.
  static Result<std::unique_ptr<Workload>> create_from(const Gpu& gpu, const Options& options);

  std::uint64_t last_step() const override { return steps_; }
  Status allocate(Memory& kept, Memory& scratch) override;
  Status warm_up(const Gpu& gpu) const override;
  Status move_to(const Gpu& gpu) override;
  Status queue_step(const Gpu& gpu, std::uint64_t step) override;
  std::span<const std::byte> state() const override { return state_.bytes(); }
  /// The first write of a successor; from here on it finds everything that is not its own.
  Status take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> state) override;
  /// "no stray write", or how many, and the first of them.
  Result<std::string> output(const Gpu& gpu) override;

 private:
  /// Memory that the active and its successor both write.
  struct Region {
    CUdeviceptr address = 0;
    std::uint32_t words = 0;
    std::uint64_t holds = 0;  ///< value of every word, once what is queued is done
  };

  ScribbleWorkload(Kernels kernels, const Preset& preset, std::uint64_t steps, std::uint64_t nonce);
  std::uint64_t value_of(std::uint64_t step, std::uint64_t part) const;
  void queue_exchange(LaunchQueue& queue, Region& region, std::uint64_t value, std::uint32_t rounds,
                      bool looks_at_first) const;
  void queue_exchanges(LaunchQueue& queue, std::uint64_t step, bool looks_at_first);
  Status queue_other_engines(const Gpu& gpu, std::uint64_t step);

  Kernels kernels_;
  Preset preset_;
  std::uint64_t steps_;
  std::uint64_t nonce_;
  StepState state_;
  Region field_;            ///< written by kernels alone
  Region copied_;           ///< region that the copy engine writes, too
  Region filled_;           ///< region that memset writes, too
  Region signalled_;        ///< word that the stream itself writes, too
  CUdeviceptr source_ = 0;  ///< source of the copies
  CUdeviceptr finds_ = 0;
  std::optional<std::uint64_t> took_over_at_;  ///< the step
};

}  // namespace firebreak::workloads::scribble
