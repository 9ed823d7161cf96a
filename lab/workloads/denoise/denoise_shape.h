// SPDX-License-Identifier: Apache-2.0
/// The dimensions of the sampler and what its kernels are given. Shared by the host and the GPU: the layout
/// of every struct here is the layout of a kernel's parameter.
#pragma once

#include <cstdint>

namespace firebreak::workloads::denoise {

/// Three colours and one that stays hidden.
inline constexpr std::uint32_t latent_channels = 4;
/// What the first convolution sees of a pixel: its latents and four waves over its coordinates.
inline constexpr std::uint32_t feature_channels = 8;
/// The time embedding: this many sines and as many cosines.
inline constexpr std::uint32_t time_frequencies = 8;

/// One predictor and one picture. `channels` is a multiple of 4.
struct Shape {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::uint32_t blocks = 0;  ///< residual blocks of two convolutions
};

struct GenerateArguments {
  float* out;  ///< 16-byte aligned
  std::uint64_t key;
  std::uint32_t chunks;  ///< of 4 values
  float scale;
};

struct InitialLatentsArguments {
  float* latents;  ///< [height][width][latent_channels]
  std::uint64_t key;
  std::uint32_t pixels;
};

struct TimeBiasArguments {
  const float* weights;  ///< [2 * time_frequencies][count]
  float* out;            ///< [count]: a bias for every channel of every convolution
  std::uint32_t count;
  float time;  ///< 1 for pure noise, 0 for the picture
};

struct FeaturesArguments {
  const float* latents;
  const float* waves;  ///< [4][4]: turns across, turns down, phase, amplitude
  float* out;          ///< [height][width][feature_channels]
  std::uint32_t width;
  std::uint32_t height;
  float latent_scale;
};

/// A 3x3 convolution; beyond the border the nearest pixel counts.
struct ConvolveArguments {
  const float* in;        ///< [height][width][in_channels]
  const float* weights;   ///< [9][in_channels][out_channels]
  const float* bias;      ///< [out_channels]
  const float* residual;  ///< like `out`, added to the result; null: none
  float* out;             ///< [height][width][out_channels]
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t in_channels;
  std::uint32_t out_channels;
  std::uint32_t activates;  ///< 1: silu(result)
};

/// x <- from_picture * x0 + from_latents * x + noise * z, where x0 is the picture that the network predicts.
struct UpdateArguments {
  float* latents;
  const float* prediction;
  std::uint64_t key;
  std::uint32_t pixels;
  float from_picture;
  float from_latents;
  float noise;
};

struct CopyArguments {
  const float* from;
  float* to;
  std::uint32_t chunks;  ///< of 4 values
};

struct PictureArguments {
  const float* latents;
  std::uint8_t* out;  ///< [height][width][3]
  std::uint32_t pixels;
};

}  // namespace firebreak::workloads::denoise
