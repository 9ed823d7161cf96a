// SPDX-License-Identifier: Apache-2.0
/// The decoder on the GPU: its buffers, and the kernels of a step in their order.
#pragma once

#include "ground/base/result.h"
#include "workloads/common/launch_queue.h"
#include "workloads/common/memory.h"
#include "workloads/decode/decode_shape.h"
#include "workloads/decode/weights.h"

namespace firebreak::workloads::decode {

/// The order is that of the names in find_kernels.
enum class Kernel { Generate, BeginStep, Embed, Norm, Project, Rotary, Attention, Swiglu, Sample };

Result<Kernels> find_kernels(const cuda::Module& module);

class Model {
 public:
  /// Takes "weights", "keys", "values" and "tokens" (with a row for each of `slots` steps) from `kept`. Takes
  /// the plan and all activations, which every step writes before it reads them, from `scratch`.
  static Result<Model> create(const Shape& shape, std::uint64_t slots, Memory& kept, Memory& scratch);

  /// Fills the weights from the seed.
  void queue_weights(LaunchQueue& queue, std::uint64_t seed) const;

  /// The first kernel of a step alone. Repeating it with the rest of the step is harmless.
  void queue_begin(LaunchQueue& queue, const StepPlan& plan) const;

  /// A whole step. It writes the cache at the plan's positions and the token slot; what it reads of those, it
  /// has written itself.
  void queue_step(LaunchQueue& queue, const StepPlan& plan) const;

  CUdeviceptr tokens() const { return tokens_; }
  CUdeviceptr logits() const { return logits_; }

 private:
  explicit Model(const Shape& shape) : shape_(shape), weights_layout_(lay_out(shape)) {}

  void queue_attention(LaunchQueue& queue, std::uint32_t layer) const;
  void queue_mlp(LaunchQueue& queue, std::uint32_t layer) const;
  void queue_sample(LaunchQueue& queue) const;
  void norm(LaunchQueue& queue, const Tensor& weights) const;
  struct Projection {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    bool accumulates = false;
  };
  void project(LaunchQueue& queue, const Tensor& weights, CUdeviceptr in, CUdeviceptr out,
               Projection size) const;

  std::uint32_t query_size() const { return shape_.heads * shape_.head_size; }
  std::uint32_t key_size() const { return shape_.key_heads * shape_.head_size; }
  std::uint64_t cache_elements_a_layer() const {
    return std::uint64_t{shape_.pages} * shape_.page_tokens * key_size();
  }
  const std::uint16_t* weights_of(const Tensor& tensor) const {
    return device_pointer<std::uint16_t>(weights_, tensor.begin);
  }

  Shape shape_;
  Weights weights_layout_;
  CUdeviceptr weights_ = 0;
  CUdeviceptr keys_ = 0;
  CUdeviceptr values_ = 0;
  CUdeviceptr tokens_ = 0;
  CUdeviceptr plan_ = 0;
  CUdeviceptr residual_ = 0;
  CUdeviceptr normed_ = 0;
  CUdeviceptr qkv_ = 0;
  CUdeviceptr attended_ = 0;
  CUdeviceptr gate_up_ = 0;
  CUdeviceptr gated_ = 0;
  CUdeviceptr logits_ = 0;
};

}  // namespace firebreak::workloads::decode
