// SPDX-License-Identifier: Apache-2.0
/// Random numbers without state: the value is a pure function of (key, counter), so that any step can be
/// repeated and any thread can compute any of them.
#pragma once

#include <cstdint>

#include "workloads/common/portable_math.h"

namespace firebreak::workloads {

/// Mixes so that every bit of the result depends on every bit of the argument.
FIREBREAK_GPU_INLINE std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

FIREBREAK_GPU_INLINE std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  return mix_bits(key + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/// A key of its own for everything that is numbered by `purpose` and `index` under one seed.
FIREBREAK_GPU_INLINE std::uint64_t random_key(std::uint64_t seed, std::uint64_t purpose,
                                              std::uint64_t index) {
  return random_bits(random_bits(seed, purpose), index);
}

/// Uniform in (-1, 1), from 24 bits: the centres of 2^24 equal cells.
FIREBREAK_GPU_INLINE float signed_uniform(std::uint32_t bits) {
  return fmaf(static_cast<float>(bits >> 8), 1.1920929e-7f, -0.99999994f);
}

/// Two independent standard normal numbers.
struct NormalPair {
  float first = 0.0f;
  float second = 0.0f;
};

/// Box and Muller's transform of one 64-bit random number.
FIREBREAK_GPU_INLINE NormalPair normal_pair(std::uint64_t bits) {
  const float uniform = (static_cast<float>(bits >> 40) + 0.5f) * 5.9604645e-8f;  // (0, 1]
  const float radius = sqrtf(fmaxf(-2.0f * logarithm(uniform), 0.0f));
  const float turns = static_cast<float>((bits >> 8) & 0xffffffu) * 5.9604645e-8f;
  return {radius * cosine_of_turns(turns), radius * sine_of_turns(turns)};
}

}  // namespace firebreak::workloads
