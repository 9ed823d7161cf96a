// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace firebreak::workloads::denoise {

/// The reverse step of a DDPM with the cosine schedule, in terms of the predicted picture.
struct ReverseStep {
  double time = 0.0;          ///< 1 for pure noise
  double from_picture = 0.0;  ///< x <- from_picture * x0 + from_latents * x + noise * z
  double from_latents = 0.0;
  double noise = 0.0;  ///< 0 in the last step
};

/// `step` from 1 to `steps`.
ReverseStep reverse_step(std::uint64_t step, std::uint64_t steps);

/// How much of the signal's power is left at `time` from 0 (all) to 1 (next to none).
double signal_power(double time);

}  // namespace firebreak::workloads::denoise
