// SPDX-License-Identifier: Apache-2.0
/// Where the decoder's weight tensors lie in one buffer, and what they are filled with.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/decode/decode_shape.h"

namespace firebreak::workloads::decode {

/// A tensor of bfloat16 numbers, uniform in offset +- scale.
struct Tensor {
  std::uint64_t begin = 0;  ///< elements from the buffer's begin; a multiple of 128
  std::uint64_t count = 0;  ///< elements, a multiple of 8
  float scale = 0.0f;
  float offset = 0.0f;
};

struct LayerWeights {
  Tensor attention_norm;
  Tensor qkv;     ///< [(heads + 2 * key_heads) * head_size][hidden]
  Tensor output;  ///< [hidden][heads * head_size]
  Tensor mlp_norm;
  Tensor gate_up;  ///< [2 * intermediate][hidden]
  Tensor down;     ///< [hidden][intermediate]
};

struct Weights {
  Tensor embedding;  ///< [vocabulary][hidden]
  std::vector<LayerWeights> layers;
  Tensor final_norm;
  Tensor head;  ///< [vocabulary][hidden]
  std::uint64_t elements = 0;

  /// All tensors, in the order of their addresses. The index in this list is what their random numbers are
  /// drawn by.
  std::vector<Tensor> tensors() const;
};

Weights lay_out(const Shape& shape);

}  // namespace firebreak::workloads::decode
