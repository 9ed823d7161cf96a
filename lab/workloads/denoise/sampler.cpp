// SPDX-License-Identifier: Apache-2.0
#include "workloads/denoise/sampler.h"

#include <cassert>
#include <cmath>

#include "ground/base/units.h"
#include "workloads/common/counter_random.h"
#include "workloads/denoise/noise_schedule.h"

namespace firebreak::workloads::denoise {
namespace {

constexpr std::uint64_t weights_purpose = 1;
constexpr std::uint64_t noise_purpose = 2;
/// How loud the latents are beside the coordinates: more gives busier pictures.
constexpr float latent_scale = 0.25f;
constexpr std::uint32_t time_terms = 2 * time_frequencies;

}  // namespace

Result<Kernels> find_kernels(const cuda::Module& module) {
  constexpr std::array names = {"denoise_generate", "denoise_initial_latents", "denoise_time_bias",
                                "denoise_features", "denoise_convolve",        "denoise_update",
                                "denoise_copy",     "denoise_picture"};
  return Kernels::find(module, names);
}

NetworkLayout lay_out(const Shape& shape) {
  NetworkLayout layout;
  const auto place = [&](std::uint64_t floats) {
    const std::uint64_t begin = layout.floats;
    layout.floats = round_up(begin + floats, 64);
    return begin;
  };
  const auto add = [&](std::uint32_t in, std::uint32_t out) {
    layout.convolutions.push_back({.weights_begin = place(std::uint64_t{9} * in * out),
                                   .bias_begin = layout.biases,
                                   .in_channels = in,
                                   .out_channels = out});
    layout.biases += out;
  };
  add(feature_channels, shape.channels);
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    add(shape.channels, shape.channels);
    add(shape.channels, shape.channels);
  }
  add(shape.channels, latent_channels);
  layout.waves_begin = place(16);
  layout.time_begin = place(std::uint64_t{time_terms} * layout.biases);
  return layout;
}

Result<Sampler> Sampler::create(const Shape& shape, Memory& kept, Memory& scratch) {
  assert(shape.channels % 4 == 0 && shape.channels > 0);
  Sampler sampler(shape);
  const auto picture_floats = [&](std::uint32_t channels) {
    return std::uint64_t{sampler.pixels()} * channels * sizeof(float);
  };
  struct Allocation {
    Memory& memory;
    const char* name;
    std::uint64_t size_bytes;
    CUdeviceptr& address;
  };
  const std::vector<Allocation> allocations = {
      {kept, "weights", sampler.layout_.floats * sizeof(float), sampler.weights_},
      {kept, "latents", picture_floats(latent_channels), sampler.latents_},
      {kept, "snapshot-0", picture_floats(latent_channels), sampler.snapshots_[0]},
      {kept, "snapshot-1", picture_floats(latent_channels), sampler.snapshots_[1]},
      {scratch, "biases", sampler.layout_.biases * sizeof(float), sampler.biases_},
      {scratch, "features", picture_floats(feature_channels), sampler.features_},
      {scratch, "hidden", picture_floats(shape.channels), sampler.hidden_},
      {scratch, "inner", picture_floats(shape.channels), sampler.inner_},
      {scratch, "prediction", picture_floats(latent_channels), sampler.prediction_},
      {scratch, "picture", std::uint64_t{sampler.pixels()} * 3, sampler.picture_},
  };
  for (const Allocation& allocation : allocations) {
    const auto address = allocation.memory.allocate(allocation.name, allocation.size_bytes);
    if (!address) return propagate(address);
    allocation.address = *address;
  }
  return sampler;
}

void Sampler::queue_start(LaunchQueue& queue, std::uint64_t seed) const {
  const auto generate = [&](std::uint64_t begin, std::uint64_t floats, float scale) {
    const auto chunks = static_cast<std::uint32_t>(floats / 4);
    queue.launch_each(Kernel::Generate, chunks,
                      GenerateArguments{.out = device_pointer<float>(weights_, begin),
                                        .key = random_key(seed, weights_purpose, begin),
                                        .chunks = chunks,
                                        .scale = scale});
  };
  for (const Convolution& convolution : layout_.convolutions) {
    const std::uint64_t inputs = std::uint64_t{9} * convolution.in_channels;
    generate(convolution.weights_begin, inputs * convolution.out_channels,
             std::sqrt(6.0f / static_cast<float>(inputs)));
  }
  generate(layout_.waves_begin, 16, 1.0f);
  generate(layout_.time_begin, std::uint64_t{time_terms} * layout_.biases, 0.1f);
  queue_first_latents(queue, seed);
}

void Sampler::queue_first_latents(LaunchQueue& queue, std::uint64_t seed) const {
  queue.launch_each(Kernel::InitialLatents, pixels(),
                    InitialLatentsArguments{.latents = device_pointer<float>(latents_),
                                            .key = random_key(seed, noise_purpose, 0),
                                            .pixels = pixels()});
}

void Sampler::queue_step(LaunchQueue& queue, std::uint64_t seed, std::uint64_t step,
                         std::uint64_t steps) const {
  const ReverseStep reverse = reverse_step(step, steps);
  queue_prediction(queue, static_cast<float>(reverse.time));
  queue.launch_each(Kernel::Update, pixels(),
                    UpdateArguments{.latents = device_pointer<float>(latents_),
                                    .prediction = device_pointer<float>(prediction_),
                                    .key = random_key(seed, noise_purpose, step),
                                    .pixels = pixels(),
                                    .from_picture = static_cast<float>(reverse.from_picture),
                                    .from_latents = static_cast<float>(reverse.from_latents),
                                    .noise = static_cast<float>(reverse.noise)});
}

void Sampler::queue_prediction(LaunchQueue& queue, float time) const {
  queue.launch_each(Kernel::TimeBias, layout_.biases,
                    TimeBiasArguments{.weights = device_pointer<float>(weights_, layout_.time_begin),
                                      .out = device_pointer<float>(biases_),
                                      .count = layout_.biases,
                                      .time = time});
  queue.launch_each(Kernel::Features, pixels(),
                    FeaturesArguments{.latents = device_pointer<float>(latents_),
                                      .waves = device_pointer<float>(weights_, layout_.waves_begin),
                                      .out = device_pointer<float>(features_),
                                      .width = shape_.width,
                                      .height = shape_.height,
                                      .latent_scale = latent_scale});
  convolve(queue, layout_.convolutions.front(), {.in = features_, .out = hidden_, .activates = true});
  for (std::uint32_t block = 0; block < shape_.blocks; ++block) {
    convolve(queue, layout_.convolutions[1 + 2 * block], {.in = hidden_, .out = inner_, .activates = true});
    convolve(queue, layout_.convolutions[2 + 2 * block], {.in = inner_, .out = hidden_, .residual = hidden_});
  }
  convolve(queue, layout_.convolutions.back(), {.in = hidden_, .out = prediction_});
}

void Sampler::convolve(LaunchQueue& queue, const Convolution& convolution, const Layer& layer) const {
  queue.launch_each(Kernel::Convolve, pixels(),
                    ConvolveArguments{.in = device_pointer<float>(layer.in),
                                      .weights = device_pointer<float>(weights_, convolution.weights_begin),
                                      .bias = device_pointer<float>(biases_, convolution.bias_begin),
                                      .residual = device_pointer<float>(layer.residual),
                                      .out = device_pointer<float>(layer.out),
                                      .width = shape_.width,
                                      .height = shape_.height,
                                      .in_channels = convolution.in_channels,
                                      .out_channels = convolution.out_channels,
                                      .activates = layer.activates ? 1u : 0u},
                    convolution.out_channels / 4);
}

void Sampler::queue_snapshot(LaunchQueue& queue, std::uint64_t step) const {
  copy_latents(queue, latents_, snapshots_[step % 2]);
}

void Sampler::queue_restore(LaunchQueue& queue, std::uint64_t step) const {
  copy_latents(queue, snapshots_[step % 2], latents_);
}

void Sampler::copy_latents(LaunchQueue& queue, CUdeviceptr from, CUdeviceptr to) const {
  static_assert(latent_channels == 4);
  queue.launch_each(
      Kernel::Copy, pixels(),
      CopyArguments{
          .from = device_pointer<float>(from), .to = device_pointer<float>(to), .chunks = pixels()});
}

void Sampler::queue_picture(LaunchQueue& queue) const {
  queue.launch_each(Kernel::Picture, pixels(),
                    PictureArguments{.latents = device_pointer<float>(latents_),
                                     .out = device_pointer<std::uint8_t>(picture_),
                                     .pixels = pixels()});
}

}  // namespace firebreak::workloads::denoise
