// SPDX-License-Identifier: Apache-2.0
#include "workloads/denoise/noise_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace firebreak::workloads::denoise {
namespace {

TEST(NoiseSchedule, TheSignalFadesFromAllToNothing) {
  EXPECT_DOUBLE_EQ(signal_power(0.0), 1.0);
  EXPECT_NEAR(signal_power(1.0), 0.0, 1e-9);
  for (double time = 0.0; time < 1.0; time += 0.01) EXPECT_GT(signal_power(time), signal_power(time + 0.01));
}

TEST(NoiseSchedule, TheLastStepGivesThePredictedPictureItself) {
  for (const std::uint64_t steps : {1u, 2u, 40u, 1000u}) {
    const ReverseStep last = reverse_step(steps, steps);
    EXPECT_NEAR(last.from_picture, 1.0, 1e-9);
    EXPECT_NEAR(last.from_latents, 0.0, 1e-9);
    EXPECT_NEAR(last.noise, 0.0, 1e-9);
  }
}

TEST(NoiseSchedule, AStepKeepsLatentsOfAFixedPictureOnTheirMarginal) {
  // x_t = sqrt(p_t) x0 + sqrt(1 - p_t) z must go over into the same form with the next power, in mean and in
  // variance.
  constexpr std::uint64_t steps = 50;
  for (std::uint64_t step = 5; step < steps; ++step) {
    const ReverseStep reverse = reverse_step(step, steps);
    const double power = signal_power(static_cast<double>(steps - step + 1) / steps);
    const double next_power = signal_power(static_cast<double>(steps - step) / steps);
    EXPECT_NEAR(reverse.from_picture + reverse.from_latents * std::sqrt(power), std::sqrt(next_power), 1e-9);
    EXPECT_NEAR(reverse.noise * reverse.noise + reverse.from_latents * reverse.from_latents * (1.0 - power),
                1.0 - next_power, 1e-9);
  }
}

}  // namespace
}  // namespace firebreak::workloads::denoise
