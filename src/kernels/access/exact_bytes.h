// SPDX-License-Identifier: Apache-2.0
/// The place where an access certainly goes, as boxes of which each byte is touched. Internal to
/// src/kernels/access.
#pragma once

#include <vector>

#include "kernels/access/evaluate.h"
#include "kernels/access/launch.h"
#include "kernels/access/overlap.h"

namespace firebreak::access {

struct ExactBytes {
  std::vector<StridedBox> boxes;  ///< boxes of which each byte is touched; there may be more such bytes
  bool is_one_to_one = false;     ///< true: no byte is touched twice
};

/// `place` is exact. Constraints that are understood: those that bound a sum of variables which takes all
/// values between its least and its greatest, and of which the address is a multiple. Others: no boxes.
ExactBytes find_exact_bytes(const ExactPlace& place, std::uint32_t width_bytes,
                            const LaunchArguments& launch);

/// Puts boxes together that touch: those of an unrolled loop, rows without gaps.
void condense(std::vector<StridedBox>& boxes);

}  // namespace firebreak::access
