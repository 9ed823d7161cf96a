// SPDX-License-Identifier: Apache-2.0
#include "workloads/denoise/denoise_workload.h"

#include <fmt/format.h>

#include "program/cuda/copy.h"
#include "workloads/common/counter_random.h"
#include "workloads/common/digest.h"

namespace firebreak::workloads::denoise {

DenoiseWorkload::DenoiseWorkload(Kernels kernels, const Preset& preset, std::uint64_t steps,
                                 std::uint64_t seed)
    : kernels_(std::move(kernels)), preset_(preset), steps_(steps), seed_(seed) {
  state_.fingerprint = mix_bits(digest_of(preset.shape) ^ mix_bits(seed ^ mix_bits(steps)));
}

Result<std::unique_ptr<Workload>> DenoiseWorkload::create(const Gpu& gpu, const Preset& preset,
                                                          std::uint64_t steps, std::uint64_t seed) {
  auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  return std::unique_ptr<Workload>(new DenoiseWorkload(std::move(*kernels), preset, steps, seed));
}

Result<std::unique_ptr<Workload>> DenoiseWorkload::create_from(const Gpu& gpu, const Options& options) {
  const Preset& preset = preset_of(options.size);
  return create(gpu, preset, options.steps != 0 ? options.steps : preset.steps, options.seed);
}

Status DenoiseWorkload::allocate(Memory& kept, Memory& scratch) {
  auto sampler = Sampler::create(preset_.shape, kept, scratch);
  if (!sampler) return propagate(sampler);
  sampler_ = std::move(*sampler);
  return {};
}

Status DenoiseWorkload::warm_up(const Gpu& gpu) const {
  const auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  PrivateMemory memory(gpu.driver());
  const auto tiny = Sampler::create(warm_up_preset.shape, memory, memory);
  if (!tiny) return propagate(tiny);
  LaunchQueue queue(*kernels, gpu.stream().handle());
  tiny->queue_start(queue, seed_);
  tiny->queue_step(queue, seed_, 1, warm_up_preset.steps);
  tiny->queue_snapshot(queue, 1);
  tiny->queue_picture(queue);
  if (!queue.status()) return queue.status();
  return gpu.stream().synchronize();
}

Status DenoiseWorkload::move_to(const Gpu& gpu) { return kernels_.replace_by(find_kernels(gpu.module())); }

Status DenoiseWorkload::queue_step(const Gpu& gpu, std::uint64_t step) {
  LaunchQueue queue(kernels_, gpu.stream().handle());
  if (step == 0) {
    sampler_->queue_start(queue, seed_);
  } else {
    sampler_->queue_step(queue, seed_, step, steps_);
  }
  sampler_->queue_snapshot(queue, step);
  state_.step = step;
  return queue.status();
}

Status DenoiseWorkload::take_over(const Gpu& gpu, std::uint64_t next_step, std::span<const std::byte> bytes) {
  LaunchQueue queue(kernels_, gpu.stream().handle());
  if (next_step == 0) {
    sampler_->queue_first_latents(queue, seed_);
    return queue.status();
  }
  if (const Status restored = state_.restore(bytes, next_step); !restored) return restored;
  sampler_->queue_restore(queue, state_.step);
  return queue.status();
}

Result<std::string> DenoiseWorkload::output(const Gpu& gpu) {
  LaunchQueue queue(kernels_, gpu.stream().handle());
  sampler_->queue_picture(queue);
  if (!queue.status()) return propagate(queue.status());
  if (const Status ended = gpu.stream().synchronize(); !ended) return propagate(ended);
  const std::string header = fmt::format("P6\n{} {}\n255\n", preset_.shape.width, preset_.shape.height);
  std::string file(header.size() + std::size_t{preset_.shape.width} * preset_.shape.height * 3, '\0');
  file.replace(0, header.size(), header);
  const auto pixels = std::as_writable_bytes(std::span(file).subspan(header.size()));
  if (const Status copied = cuda::copy_to_host(gpu.driver(), pixels, sampler_->picture()); !copied) {
    return propagate(copied);
  }
  return file;
}

}  // namespace firebreak::workloads::denoise
