// SPDX-License-Identifier: Apache-2.0
/// The diffusion sampler on the GPU: its buffers, and the kernels of a step in their order.
#pragma once

#include <array>
#include <vector>

#include "ground/base/result.h"
#include "workloads/common/launch_queue.h"
#include "workloads/common/memory.h"
#include "workloads/denoise/denoise_shape.h"

namespace firebreak::workloads::denoise {

/// The order is that of the names in find_kernels.
enum class Kernel { Generate, InitialLatents, TimeBias, Features, Convolve, Update, Copy, Picture };

Result<Kernels> find_kernels(const cuda::Module& module);

/// One convolution's place in the weights and in the biases, both in floats.
struct Convolution {
  std::uint64_t weights_begin = 0;
  std::uint32_t bias_begin = 0;
  std::uint32_t in_channels = 0;
  std::uint32_t out_channels = 0;
};

/// Where everything lies in the weight buffer, in floats.
struct NetworkLayout {
  std::vector<Convolution> convolutions;  ///< the first, two a block, the last
  std::uint64_t waves_begin = 0;
  std::uint64_t time_begin = 0;
  std::uint64_t floats = 0;
  std::uint32_t biases = 0;
};

NetworkLayout lay_out(const Shape& shape);

class Sampler {
 public:
  /// From `kept`: "weights", "latents", "snapshot-0", "snapshot-1". From `scratch`: activations, and the
  /// picture, which are written before they are read.
  static Result<Sampler> create(const Shape& shape, Memory& kept, Memory& scratch);

  /// Weights and the first latents, from the seed.
  void queue_start(LaunchQueue& queue, std::uint64_t seed) const;
  void queue_first_latents(LaunchQueue& queue, std::uint64_t seed) const;

  /// Step `step` of `steps`, which updates the latents in place: half of it leaves latents that belong to no
  /// step.
  void queue_step(LaunchQueue& queue, std::uint64_t seed, std::uint64_t step, std::uint64_t steps) const;

  /// Copies the latents of `step` to the snapshot that the step before did not use.
  void queue_snapshot(LaunchQueue& queue, std::uint64_t step) const;
  /// The other way: latents as `step` left them, from its snapshot.
  void queue_restore(LaunchQueue& queue, std::uint64_t step) const;

  /// Three bytes a pixel, at `picture()`.
  void queue_picture(LaunchQueue& queue) const;
  CUdeviceptr picture() const { return picture_; }
  CUdeviceptr prediction() const { return prediction_; }

 private:
  explicit Sampler(const Shape& shape) : shape_(shape), layout_(lay_out(shape)) {}

  void queue_prediction(LaunchQueue& queue, float time) const;
  struct Layer {
    CUdeviceptr in = 0;
    CUdeviceptr out = 0;
    CUdeviceptr residual = 0;
    bool activates = false;
  };
  void convolve(LaunchQueue& queue, const Convolution& convolution, const Layer& layer) const;
  void copy_latents(LaunchQueue& queue, CUdeviceptr from, CUdeviceptr to) const;
  std::uint32_t pixels() const { return shape_.width * shape_.height; }

  Shape shape_;
  NetworkLayout layout_;
  CUdeviceptr weights_ = 0;
  CUdeviceptr latents_ = 0;
  std::array<CUdeviceptr, 2> snapshots_ = {};
  CUdeviceptr biases_ = 0;
  CUdeviceptr features_ = 0;
  CUdeviceptr hidden_ = 0;
  CUdeviceptr inner_ = 0;
  CUdeviceptr prediction_ = 0;
  CUdeviceptr picture_ = 0;
};

}  // namespace firebreak::workloads::denoise
