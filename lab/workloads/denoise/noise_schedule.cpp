// SPDX-License-Identifier: Apache-2.0
#include "workloads/denoise/noise_schedule.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace firebreak::workloads::denoise {

double signal_power(double time) {
  constexpr double offset = 0.008;
  const auto curve = [](double at) {
    const double cosine = std::cos((at + offset) / (1.0 + offset) * std::numbers::pi / 2.0);
    return cosine * cosine;
  };
  return curve(time) / curve(0.0);
}

ReverseStep reverse_step(std::uint64_t step, std::uint64_t steps) {
  assert(step >= 1 && step <= steps);
  const double time = static_cast<double>(steps - step + 1) / static_cast<double>(steps);
  const double next_time = static_cast<double>(steps - step) / static_cast<double>(steps);
  const double next_power = signal_power(next_time);
  // A step never removes more than this much of the signal, or the last powers would divide by nothing.
  const double alpha = std::max(signal_power(time) / next_power, 0.001);
  const double power = alpha * next_power;
  return {.time = time,
          .from_picture = std::sqrt(next_power) * (1.0 - alpha) / (1.0 - power),
          .from_latents = std::sqrt(alpha) * (1.0 - next_power) / (1.0 - power),
          .noise = std::sqrt((1.0 - alpha) * (1.0 - next_power) / (1.0 - power))};
}

}  // namespace firebreak::workloads::denoise
