// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/decode_reference.h"

#include <algorithm>
#include <cmath>

#include "workloads/common/portable_math.h"

namespace firebreak::workloads::decode {
namespace {

double round_to_bfloat16(double value) {
  return static_cast<double>(low_bfloat16(bfloat16_of_float(static_cast<float>(value))));
}

void add(std::vector<double>& sum, const std::vector<double>& values) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

}  // namespace

double Reference::weight(const Tensor& tensor, std::uint64_t index) const {
  return static_cast<double>(low_bfloat16(weights_[tensor.begin + index]));
}

Reference::Vector Reference::norm(const Tensor& weights, const Vector& in) const {
  double squares = 0.0;
  for (const double value : in) squares += value * value;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(in.size()) + 1e-5);
  Vector out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * factor * weight(weights, i);
  return out;
}

Reference::Vector Reference::multiply(const Tensor& matrix, std::uint32_t rows, const Vector& in) const {
  Vector out(rows);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < in.size(); ++i) out[row] += weight(matrix, row * in.size() + i) * in[i];
  }
  return out;
}

void Reference::rotate(double* head) const {
  for (std::uint32_t pair = 0; pair < shape_.head_size / 2; ++pair) {
    const double angle = position_ * std::pow(10000.0, -2.0 * pair / shape_.head_size);
    const double x = head[2 * pair];
    const double y = head[2 * pair + 1];
    head[2 * pair] = x * std::cos(angle) - y * std::sin(angle);
    head[2 * pair + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
}

Reference::Vector Reference::attend(std::uint32_t layer, Vector qkv) {
  const std::uint32_t size = shape_.head_size;
  const std::uint32_t key_begin = shape_.heads * size;
  const std::uint32_t value_begin = key_begin + shape_.key_heads * size;
  for (std::uint32_t begin = 0; begin < value_begin; begin += size) rotate(&qkv[begin]);
  Vector keys(qkv.begin() + key_begin, qkv.begin() + value_begin);
  Vector values(qkv.begin() + value_begin, qkv.end());
  std::transform(keys.begin(), keys.end(), keys.begin(), round_to_bfloat16);
  std::transform(values.begin(), values.end(), values.begin(), round_to_bfloat16);
  keys_[layer].push_back(keys);
  values_[layer].push_back(values);

  Vector out(shape_.heads * size);
  for (std::uint32_t head = 0; head < shape_.heads; ++head) {
    const std::uint32_t key_head = head * shape_.key_heads / shape_.heads;
    Vector scores;
    double total = 0.0;
    for (const Vector& key : keys_[layer]) {
      double dot = 0.0;
      for (std::uint32_t i = 0; i < size; ++i) dot += qkv[head * size + i] * key[key_head * size + i];
      scores.push_back(std::exp(dot / std::sqrt(size)));
      total += scores.back();
    }
    for (std::size_t t = 0; t < scores.size(); ++t) {
      for (std::uint32_t i = 0; i < size; ++i) {
        out[head * size + i] += scores[t] / total * values_[layer][t][key_head * size + i];
      }
    }
  }
  return out;
}

std::vector<double> Reference::next(std::uint32_t token) {
  Vector residual(shape_.hidden);
  for (std::uint32_t i = 0; i < shape_.hidden; ++i) {
    residual[i] = weight(layout_.embedding, std::uint64_t{token} * shape_.hidden + i);
  }
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    const LayerWeights& weights = layout_.layers[layer];
    const std::uint32_t qkv_size = (shape_.heads + 2 * shape_.key_heads) * shape_.head_size;
    const Vector qkv = multiply(weights.qkv, qkv_size, norm(weights.attention_norm, residual));
    add(residual, multiply(weights.output, shape_.hidden, attend(layer, qkv)));
    const Vector gate_up =
        multiply(weights.gate_up, 2 * shape_.intermediate, norm(weights.mlp_norm, residual));
    Vector gated(shape_.intermediate);
    for (std::uint32_t i = 0; i < shape_.intermediate; ++i) {
      gated[i] = gate_up[i] / (1.0 + std::exp(-gate_up[i])) * gate_up[shape_.intermediate + i];
    }
    add(residual, multiply(weights.down, shape_.hidden, gated));
  }
  ++position_;
  return multiply(layout_.head, shape_.vocabulary, norm(layout_.final_norm, residual));
}

}  // namespace firebreak::workloads::decode
