// SPDX-License-Identifier: Apache-2.0
// The sampler's kernels. Noise is a pure function of (seed, step, pixel) and every sum has a fixed order, so
// that a step can be repeated by another process and gives the same bits, provided that the latents it starts
// from are whole.

#include "workloads/common/counter_random.h"
#include "workloads/denoise/denoise_shape.h"

using namespace firebreak::workloads;
using namespace firebreak::workloads::denoise;

namespace {

__device__ float4 multiply_add(float factor, float4 values, float4 sum) {
  return make_float4(fmaf(factor, values.x, sum.x), fmaf(factor, values.y, sum.y),
                     fmaf(factor, values.z, sum.z), fmaf(factor, values.w, sum.w));
}

__device__ float4 normals(std::uint64_t key, std::uint32_t pixel) {
  const NormalPair first = normal_pair(random_bits(key, static_cast<std::uint64_t>(pixel) * 2));
  const NormalPair second = normal_pair(random_bits(key, static_cast<std::uint64_t>(pixel) * 2 + 1));
  return make_float4(first.first, first.second, second.first, second.second);
}

__device__ std::uint32_t clamp_index(std::int32_t index, std::uint32_t count) {
  return static_cast<std::uint32_t>(min(max(index, 0), static_cast<std::int32_t>(count) - 1));
}

__device__ std::uint8_t byte_of(float value) {
  return static_cast<std::uint8_t>(fminf(fmaxf(fmaf(value, 127.5f, 128.0f), 0.0f), 255.0f));
}

}  // namespace

/// Fills a weight tensor with uniform numbers in +- scale.
extern "C" __global__ void denoise_generate(GenerateArguments a) {
  const std::uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
  if (chunk >= a.chunks) return;
  const std::uint64_t first = random_bits(a.key, static_cast<std::uint64_t>(chunk) * 2);
  const std::uint64_t second = random_bits(a.key, static_cast<std::uint64_t>(chunk) * 2 + 1);
  reinterpret_cast<float4*>(a.out)[chunk] =
      make_float4(a.scale * signed_uniform(static_cast<std::uint32_t>(first)),
                  a.scale * signed_uniform(static_cast<std::uint32_t>(first >> 32)),
                  a.scale * signed_uniform(static_cast<std::uint32_t>(second)),
                  a.scale * signed_uniform(static_cast<std::uint32_t>(second >> 32)));
}

/// Standard normal noise, one thread a pixel.
extern "C" __global__ void denoise_initial_latents(InitialLatentsArguments a) {
  const std::uint32_t pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= a.pixels) return;
  reinterpret_cast<float4*>(a.latents)[pixel] = normals(a.key, pixel);
}

/// One thread a channel: a linear map of the sines and cosines of the time.
extern "C" __global__ void denoise_time_bias(TimeBiasArguments a) {
  const std::uint32_t channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= a.count) return;
  float sum = 0.0f;
  float turns = a.time * 0.25f;
  for (std::uint32_t i = 0; i < time_frequencies; ++i) {
    sum = fmaf(a.weights[2 * i * a.count + channel], sine_of_turns(turns), sum);
    sum = fmaf(a.weights[(2 * i + 1) * a.count + channel], cosine_of_turns(turns), sum);
    turns *= 2.0f;
  }
  a.out[channel] = sum;
}

/// One thread a pixel: what the network sees.
extern "C" __global__ void denoise_features(FeaturesArguments a) {
  const std::uint32_t pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= a.width * a.height) return;
  const float across = static_cast<float>(pixel % a.width) / static_cast<float>(a.width);
  const float down = static_cast<float>(pixel / a.width) / static_cast<float>(a.height);
  const float4 latents = reinterpret_cast<const float4*>(a.latents)[pixel];
  float4* out = reinterpret_cast<float4*>(a.out) + pixel * 2;
  out[0] = make_float4(latents.x * a.latent_scale, latents.y * a.latent_scale, latents.z * a.latent_scale,
                       latents.w * a.latent_scale);
  float waves[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const float4 wave = reinterpret_cast<const float4*>(a.waves)[i];
    waves[i] = sine_of_turns(fmaf(across, 2.0f * wave.x, fmaf(down, 2.0f * wave.y, wave.z)));
  }
  out[1] = make_float4(waves[0], waves[1], waves[2], waves[3]);
}

/// One thread a pixel (blockIdx.x) and four output channels (blockIdx.y).
extern "C" __global__ void denoise_convolve(ConvolveArguments a) {
  const std::uint32_t pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= a.width * a.height) return;
  const std::uint32_t channel = blockIdx.y * 4;
  const std::int32_t x = static_cast<std::int32_t>(pixel % a.width);
  const std::int32_t y = static_cast<std::int32_t>(pixel / a.width);
  float4 sum = *reinterpret_cast<const float4*>(a.bias + channel);
  const float* weights = a.weights + channel;
  for (std::int32_t down = -1; down <= 1; ++down) {
    const std::uint32_t row = clamp_index(y + down, a.height) * a.width;
    for (std::int32_t across = -1; across <= 1; ++across) {
      const float* in = a.in + (row + clamp_index(x + across, a.width)) * a.in_channels;
      for (std::uint32_t i = 0; i < a.in_channels; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(in + i);
        sum = multiply_add(four.x, *reinterpret_cast<const float4*>(weights), sum);
        sum = multiply_add(four.y, *reinterpret_cast<const float4*>(weights + a.out_channels), sum);
        sum = multiply_add(four.z, *reinterpret_cast<const float4*>(weights + 2 * a.out_channels), sum);
        sum = multiply_add(four.w, *reinterpret_cast<const float4*>(weights + 3 * a.out_channels), sum);
        weights += 4 * a.out_channels;
      }
    }
  }
  if (a.activates != 0) sum = make_float4(silu(sum.x), silu(sum.y), silu(sum.z), silu(sum.w));
  const std::uint64_t element = static_cast<std::uint64_t>(pixel) * a.out_channels + channel;
  if (a.residual != nullptr)
    sum = multiply_add(1.0f, *reinterpret_cast<const float4*>(a.residual + element), sum);
  *reinterpret_cast<float4*>(a.out + element) = sum;
}

/// One thread a pixel: the reverse step of the diffusion, in place.
extern "C" __global__ void denoise_update(UpdateArguments a) {
  const std::uint32_t pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= a.pixels) return;
  const float4 raw = reinterpret_cast<const float4*>(a.prediction)[pixel];
  const float4 picture = make_float4(tangent_hyperbolic(raw.x), tangent_hyperbolic(raw.y),
                                     tangent_hyperbolic(raw.z), tangent_hyperbolic(raw.w));
  float4* latents = reinterpret_cast<float4*>(a.latents) + pixel;
  float4 sum = multiply_add(a.from_latents, *latents, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
  sum = multiply_add(a.from_picture, picture, sum);
  if (a.noise != 0.0f) sum = multiply_add(a.noise, normals(a.key, pixel), sum);
  *latents = sum;
}

/// Copies latents to a snapshot and back: a kernel, since a kernel is what a standby has already warmed up.
extern "C" __global__ void denoise_copy(CopyArguments a) {
  const std::uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
  if (chunk < a.chunks)
    reinterpret_cast<float4*>(a.to)[chunk] = reinterpret_cast<const float4*>(a.from)[chunk];
}

/// One thread a pixel: latents in [-1, 1] to bytes.
extern "C" __global__ void denoise_picture(PictureArguments a) {
  const std::uint32_t pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= a.pixels) return;
  const float4 latents = reinterpret_cast<const float4*>(a.latents)[pixel];
  std::uint8_t* out = a.out + pixel * 3;
  out[0] = byte_of(latents.x);
  out[1] = byte_of(latents.y);
  out[2] = byte_of(latents.z);
}
