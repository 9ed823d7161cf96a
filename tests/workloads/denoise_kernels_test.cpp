// SPDX-License-Identifier: Apache-2.0
// The sampler's kernels against a plain CPU implementation in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>

#include "tests/workloads/gpu_memory.h"
#include "workloads/common/counter_random.h"
#include "workloads/denoise/denoise_workload.h"
#include "workloads/denoise/noise_schedule.h"
#include "workloads/denoise/sampler.h"

namespace firebreak::workloads::denoise {

static void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.width << "x" << shape.height << "x" << shape.channels;
}

namespace {

using workloads::testing::download;
using workloads::testing::SharedMemory;

constexpr std::uint64_t seed = 21;

/// The network in double precision, from the weights that the GPU made.
class Reference {
 public:
  Reference(const Shape& shape, const std::vector<float>& weights)
      : shape_(shape), layout_(lay_out(shape)), weights_(weights) {}

  std::vector<double> predict(const std::vector<float>& latents, double time) const {
    const std::vector<double> biases = time_biases(time);
    const auto& all = layout_.convolutions;
    auto hidden = activate(convolve(all.front(), features(latents), biases));
    for (std::size_t i = 1; i + 1 < all.size(); i += 2) {
      const auto inner = activate(convolve(all[i], hidden, biases));
      const auto change = convolve(all[i + 1], inner, biases);
      for (std::size_t j = 0; j < hidden.size(); ++j) hidden[j] += change[j];
    }
    return convolve(all.back(), hidden, biases);
  }

 private:
  double weight(std::uint64_t index) const { return static_cast<double>(weights_[index]); }

  static double sine_of(double turns) { return std::sin(2.0 * std::numbers::pi * turns); }

  std::vector<double> time_biases(double time) const {
    std::vector<double> biases(layout_.biases);
    for (std::uint32_t channel = 0; channel < layout_.biases; ++channel) {
      for (std::uint32_t i = 0; i < time_frequencies; ++i) {
        const double turns = time * 0.25 * std::pow(2.0, i);
        const std::uint64_t begin = layout_.time_begin + 2 * i * layout_.biases + channel;
        biases[channel] +=
            weight(begin) * sine_of(turns) + weight(begin + layout_.biases) * sine_of(turns + 0.25);
      }
    }
    return biases;
  }

  std::vector<double> features(const std::vector<float>& latents) const {
    std::vector<double> out;
    for (std::uint32_t pixel = 0; pixel < shape_.width * shape_.height; ++pixel) {
      const double across = static_cast<double>(pixel % shape_.width) / shape_.width;
      const double down = static_cast<double>(pixel / shape_.width) / shape_.height;
      for (std::uint32_t i = 0; i < 4; ++i) out.push_back(0.25 * static_cast<double>(latents[pixel * 4 + i]));
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint64_t wave = layout_.waves_begin + i * 4;
        out.push_back(
            sine_of(2.0 * weight(wave) * across + 2.0 * weight(wave + 1) * down + weight(wave + 2)));
      }
    }
    return out;
  }

  std::vector<double> convolve(const Convolution& convolution, const std::vector<double>& in,
                               const std::vector<double>& biases) const {
    const int width = static_cast<int>(shape_.width);
    const int height = static_cast<int>(shape_.height);
    std::vector<double> out;
    for (int pixel = 0; pixel < width * height; ++pixel) {
      for (std::uint32_t channel = 0; channel < convolution.out_channels; ++channel) {
        double sum = biases[convolution.bias_begin + channel];
        for (int tap = 0; tap < 9; ++tap) {
          const int x = std::clamp(pixel % width + tap % 3 - 1, 0, width - 1);
          const int y = std::clamp(pixel / width + tap / 3 - 1, 0, height - 1);
          for (std::uint32_t i = 0; i < convolution.in_channels; ++i) {
            const std::uint64_t index =
                (static_cast<std::uint64_t>(tap) * convolution.in_channels + i) * convolution.out_channels +
                channel;
            sum += weight(convolution.weights_begin + index) *
                   in[static_cast<std::size_t>(y * width + x) * convolution.in_channels + i];
          }
        }
        out.push_back(sum);
      }
    }
    return out;
  }

  static std::vector<double> activate(std::vector<double> values) {
    for (double& value : values) value = value / (1.0 + std::exp(-value));
    return values;
  }

  Shape shape_;
  NetworkLayout layout_;
  const std::vector<float>& weights_;
};

class DenoiseKernels : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { sampler.queue_start(queue, seed); }

  const Gpu gpu = workloads::testing::open_soft_gpu(ptx());
  Shape shape = GetParam();
  Kernels kernels = find_kernels(gpu.module()).value();
  SharedMemory memory{gpu.driver()};
  Sampler sampler = Sampler::create(shape, memory, memory).value();
  LaunchQueue queue{kernels, gpu.stream().handle()};
};

TEST_P(DenoiseKernels, TheFirstLatentsAreTheSeedsNormalNumbersBitForBit) {
  const auto latents = download<float>(gpu, memory.region("latents"));
  const std::uint64_t key = random_key(seed, 2, 0);
  for (std::uint64_t i = 0; i < latents.size(); i += 2) {
    const NormalPair pair = normal_pair(random_bits(key, i / 2));
    ASSERT_EQ(bits_of_float(latents[i]), bits_of_float(pair.first)) << i;
    ASSERT_EQ(bits_of_float(latents[i + 1]), bits_of_float(pair.second)) << i;
  }
}

TEST_P(DenoiseKernels, StepsFollowTheReference) {
  constexpr std::uint64_t steps = 5;
  const auto weights = download<float>(gpu, memory.region("weights"));
  const Reference reference(shape, weights);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const auto before = download<float>(gpu, memory.region("latents"));
    sampler.queue_step(queue, seed, step, steps);
    ASSERT_TRUE(queue.status()) << to_string(queue.status().error());
    const auto after = download<float>(gpu, memory.region("latents"));
    const ReverseStep reverse = reverse_step(step, steps);
    const auto prediction = reference.predict(before, reverse.time);
    const std::uint64_t key = random_key(seed, 2, step);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const NormalPair pair = normal_pair(random_bits(key, i / 2));
      const double noise = static_cast<double>(i % 2 == 0 ? pair.first : pair.second);
      const double expected = reverse.from_picture * std::tanh(prediction[i]) +
                              reverse.from_latents * static_cast<double>(before[i]) + reverse.noise * noise;
      ASSERT_NEAR(after[i], expected, 2e-4) << "step " << step << " element " << i;
    }
  }
}

TEST_P(DenoiseKernels, SnapshotsTakeTurnsAndComeBackWhole) {
  sampler.queue_snapshot(queue, 4);
  const auto fourth = download<float>(gpu, memory.region("latents"));
  sampler.queue_step(queue, seed, 1, 5);
  sampler.queue_snapshot(queue, 5);
  const auto fifth = download<float>(gpu, memory.region("latents"));
  EXPECT_EQ(download<float>(gpu, memory.region("snapshot-0")), fourth);
  EXPECT_EQ(download<float>(gpu, memory.region("snapshot-1")), fifth);
  EXPECT_NE(fourth, fifth);
  sampler.queue_restore(queue, 4);
  EXPECT_EQ(download<float>(gpu, memory.region("latents")), fourth);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenoiseKernels,
                         ::testing::Values(Shape{.width = 12, .height = 7, .channels = 8, .blocks = 1},
                                           Shape{.width = 1, .height = 3, .channels = 4, .blocks = 2},
                                           Shape{.width = 16, .height = 16, .channels = 4, .blocks = 0}));

}  // namespace
}  // namespace firebreak::workloads::denoise
