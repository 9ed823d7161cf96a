// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/decode/weights.h"

namespace firebreak::workloads::decode {

/// One sequence of the decoder in double precision on the CPU, written for plainness: what the kernels are
/// compared with. Keys and values are rounded to bfloat16 as on the GPU.
class Reference {
 public:
  Reference(const Shape& shape, const std::vector<std::uint16_t>& weights)
      : shape_(shape),
        layout_(lay_out(shape)),
        weights_(weights),
        keys_(shape.layers),
        values_(shape.layers) {}

  /// The logits after one more token.
  std::vector<double> next(std::uint32_t token);

 private:
  using Vector = std::vector<double>;
  double weight(const Tensor& tensor, std::uint64_t index) const;
  Vector norm(const Tensor& weights, const Vector& in) const;
  Vector multiply(const Tensor& matrix, std::uint32_t rows, const Vector& in) const;
  Vector attend(std::uint32_t layer, Vector qkv);
  void rotate(double* head) const;

  Shape shape_;
  Weights layout_;
  const std::vector<std::uint16_t>& weights_;
  std::vector<std::vector<Vector>> keys_;  ///< [layer][position]: all key heads
  std::vector<std::vector<Vector>> values_;
  std::uint32_t position_ = 0;
};

}  // namespace firebreak::workloads::decode
