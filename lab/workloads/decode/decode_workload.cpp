// SPDX-License-Identifier: Apache-2.0
#include "workloads/decode/decode_workload.h"

#include <fmt/format.h>

#include <cassert>
#include <vector>

#include "program/cuda/copy.h"

namespace firebreak::workloads::decode {

Result<std::unique_ptr<Workload>> DecodeWorkload::create(const Gpu& gpu, const Preset& preset,
                                                         std::uint64_t steps, std::uint64_t seed) {
  auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  return std::unique_ptr<Workload>(new DecodeWorkload(std::move(*kernels), preset, steps, seed));
}

Result<std::unique_ptr<Workload>> DecodeWorkload::create_from(const Gpu& gpu, const Options& options) {
  const Preset& preset = preset_of(options.size);
  return create(gpu, preset, options.steps != 0 ? options.steps : preset.steps, options.seed);
}

Status DecodeWorkload::allocate(Memory& kept, Memory& scratch) {
  auto model = Model::create(preset_.shape, steps_, kept, scratch);
  if (!model) return propagate(model);
  model_ = std::move(*model);
  return {};
}

Status DecodeWorkload::warm_up(const Gpu& gpu) const {
  const auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  PrivateMemory memory(gpu.driver());
  const auto tiny = Model::create(warm_up_preset.shape, warm_up_preset.steps, memory, memory);
  if (!tiny) return propagate(tiny);
  Schedule schedule(warm_up_preset.shape, warm_up_preset.traffic, seed_);
  LaunchQueue queue(*kernels, gpu.stream().handle());
  tiny->queue_weights(queue, seed_);
  tiny->queue_step(queue, schedule.advance());
  if (!queue.status()) return queue.status();
  return gpu.stream().synchronize();
}

Status DecodeWorkload::move_to(const Gpu& gpu) { return kernels_.replace_by(find_kernels(gpu.module())); }

Status DecodeWorkload::queue_step(const Gpu& gpu, std::uint64_t step) {
  LaunchQueue queue(kernels_, gpu.stream().handle());
  if (step == 0) {
    model_->queue_weights(queue, seed_);
  } else {
    assert(step == schedule_.state().step + 1);
    model_->queue_step(queue, schedule_.advance());
  }
  return queue.status();
}

Status DecodeWorkload::take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> state) {
  schedule_ = Schedule(preset_.shape, preset_.traffic, seed_);
  if (next_step > 0) {
    if (const Status restored = schedule_.restore(state); !restored) return restored;
    if (schedule_.state().step != next_step - 1 || next_step - 1 > steps_) {
      return fail(ErrorCode::Protocol, fmt::format("committed state is of step {}, not {}",
                                                   schedule_.state().step, next_step - 1));
    }
  }
  Schedule next = schedule_;
  LaunchQueue queue(kernels_, gpu.stream().handle());
  model_->queue_begin(queue, next.advance());
  return queue.status();
}

Result<std::string> DecodeWorkload::output(const Gpu& gpu) {
  std::vector<std::uint32_t> tokens(steps_ * preset_.shape.streams);
  if (const Status ended = gpu.stream().synchronize(); !ended) return propagate(ended);
  const Status copied =
      cuda::copy_to_host(gpu.driver(), std::as_writable_bytes(std::span(tokens)), model_->tokens());
  if (!copied) return propagate(copied);
  return format_answers(Schedule(preset_.shape, preset_.traffic, seed_), preset_.shape, tokens);
}

}  // namespace firebreak::workloads::decode
