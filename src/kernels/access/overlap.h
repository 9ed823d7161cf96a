// SPDX-License-Identifier: Apache-2.0
/// Strided boxes of bytes, and whether two can meet.
#pragma once

#include <cstdint>

#include "kernels/access/affine.h"

namespace firebreak::access {

/// `width_bytes` bytes from each member of `starts` on.
struct StridedBox {
  Affine starts;
  Wide width_bytes = 0;

  Wide begin() const { return starts.low(); }
  Wide end() const { return starts.high() + width_bytes; }
};

/// False only where no byte is in both, whatever the variables are: those of one box and the other are
/// different threads'. Beside the ranges it compares residues: rows of a matrix that alternate do not meet.
bool may_meet(const StridedBox& a, const StridedBox& b);

}  // namespace firebreak::access
