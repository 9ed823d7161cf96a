// SPDX-License-Identifier: Apache-2.0
#include "workloads/decode/weights.h"

#include <cmath>

#include "ground/base/units.h"

namespace firebreak::workloads::decode {
namespace {

class Layouter {
 public:
  /// The products of a matrix with inputs of variance 1 have variance 1.
  Tensor matrix(std::uint64_t rows, std::uint64_t columns) {
    return place(rows * columns, std::sqrt(3.0f / static_cast<float>(columns)), 0.0f);
  }
  Tensor norm(std::uint64_t count) { return place(count, 0.25f, 1.0f); }
  std::uint64_t elements() const { return elements_; }

 private:
  Tensor place(std::uint64_t count, float scale, float offset) {
    const Tensor tensor{elements_, count, scale, offset};
    elements_ = round_up(elements_ + count, 128);
    return tensor;
  }
  std::uint64_t elements_ = 0;
};

}  // namespace

Weights lay_out(const Shape& shape) {
  const std::uint32_t query_size = shape.heads * shape.head_size;
  const std::uint32_t key_size = shape.key_heads * shape.head_size;
  Layouter layouter;
  Weights weights;
  weights.embedding = layouter.matrix(shape.vocabulary, shape.hidden);
  weights.embedding.scale = std::sqrt(3.0f);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    LayerWeights& tensors = weights.layers.emplace_back();
    tensors.attention_norm = layouter.norm(shape.hidden);
    tensors.qkv = layouter.matrix(query_size + 2 * key_size, shape.hidden);
    tensors.output = layouter.matrix(shape.hidden, query_size);
    tensors.mlp_norm = layouter.norm(shape.hidden);
    tensors.gate_up = layouter.matrix(2 * shape.intermediate, shape.hidden);
    tensors.down = layouter.matrix(shape.hidden, shape.intermediate);
  }
  weights.final_norm = layouter.norm(shape.hidden);
  weights.head = layouter.matrix(shape.vocabulary, shape.hidden);
  weights.elements = layouter.elements();
  return weights;
}

std::vector<Tensor> Weights::tensors() const {
  std::vector<Tensor> all = {embedding};
  for (const LayerWeights& layer : layers) {
    all.insert(all.end(),
               {layer.attention_norm, layer.qkv, layer.output, layer.mlp_norm, layer.gate_up, layer.down});
  }
  all.insert(all.end(), {final_norm, head});
  return all;
}

}  // namespace firebreak::workloads::decode
