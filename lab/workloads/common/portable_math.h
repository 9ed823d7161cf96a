// SPDX-License-Identifier: Apache-2.0
/// Arithmetic that gives the same bits on the host, on the software GPU and on a real one: only operations
/// that IEEE 754 rounds exactly (add, multiply, divide, square root, fused multiply-add), in a written order.
/// CUDA code that includes this is compiled with -fmad=false, so that no compiler fuses what is not written
/// as fmaf.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define FIREBREAK_GPU_INLINE __host__ __device__ inline
#else
#define FIREBREAK_GPU_INLINE inline
#endif

namespace firebreak::workloads {

FIREBREAK_GPU_INLINE float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

FIREBREAK_GPU_INLINE std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The lower and the upper bfloat16 of a packed pair.
FIREBREAK_GPU_INLINE float low_bfloat16(std::uint32_t pair) { return float_of_bits(pair << 16); }
FIREBREAK_GPU_INLINE float high_bfloat16(std::uint32_t pair) { return float_of_bits(pair & 0xffff0000u); }

/// Rounds a finite value to bfloat16, ties to even.
FIREBREAK_GPU_INLINE std::uint32_t bfloat16_of_float(float value) {
  const std::uint32_t bits = bits_of_float(value);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

FIREBREAK_GPU_INLINE std::uint32_t pack_bfloat16(float low, float high) {
  return bfloat16_of_float(low) | (bfloat16_of_float(high) << 16);
}

/// 2^x, relative error below 3e-7; x is clamped to [-126, 127].
FIREBREAK_GPU_INLINE float exponential2(float x) {
  const float clamped = fminf(fmaxf(x, -126.0f), 127.0f);
  const float whole = rintf(clamped);
  const float y = (clamped - whole) * 0.693147181f;
  float sum = 1.98412698e-4f;
  sum = fmaf(sum, y, 1.38888889e-3f);
  sum = fmaf(sum, y, 8.33333333e-3f);
  sum = fmaf(sum, y, 4.16666667e-2f);
  sum = fmaf(sum, y, 1.66666667e-1f);
  sum = fmaf(sum, y, 0.5f);
  sum = fmaf(sum, y, 1.0f);
  sum = fmaf(sum, y, 1.0f);
  return sum * float_of_bits(static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) + 127) << 23);
}

/// e^x with the range of exponential2.
FIREBREAK_GPU_INLINE float exponential(float x) { return exponential2(x * 1.44269504f); }

/// sin(2 pi turns), absolute error below 1e-6 for |turns| < 1; the argument's own rounding comes on top
/// beyond.
FIREBREAK_GPU_INLINE float sine_of_turns(float turns) {
  const float part = turns - rintf(turns);  // [-0.5, 0.5]
  const float folded = part > 0.25f ? 0.5f - part : part < -0.25f ? -0.5f - part : part;
  const float x = folded * 6.28318531f;
  const float square = x * x;
  float sum = -2.50521084e-8f;
  sum = fmaf(sum, square, 2.75573192e-6f);
  sum = fmaf(sum, square, -1.98412698e-4f);
  sum = fmaf(sum, square, 8.33333333e-3f);
  sum = fmaf(sum, square, -1.66666667e-1f);
  return fmaf(sum * square, x, x);
}

FIREBREAK_GPU_INLINE float cosine_of_turns(float turns) {
  return sine_of_turns(turns - rintf(turns) + 0.25f);
}

/// ln(x) of a normal positive x, relative error below 1e-6 away from 1.
FIREBREAK_GPU_INLINE float logarithm(float x) {
  const std::uint32_t bits = bits_of_float(x);
  // Splits x into 2^exponent * mantissa with the mantissa in [0.7, 1.4].
  const std::int32_t exponent = static_cast<std::int32_t>(bits - 0x3f333333u) >> 23;
  const float mantissa = float_of_bits(bits - (static_cast<std::uint32_t>(exponent) << 23));
  const float s = (mantissa - 1.0f) / (mantissa + 1.0f);
  const float square = s * s;
  float sum = 2.22222222e-1f;
  sum = fmaf(sum, square, 2.85714286e-1f);
  sum = fmaf(sum, square, 0.4f);
  sum = fmaf(sum, square, 6.66666667e-1f);
  sum = fmaf(sum, square, 2.0f);
  return fmaf(static_cast<float>(exponent), 0.693147181f, sum * s);
}

/// x / (1 + e^-x).
FIREBREAK_GPU_INLINE float silu(float x) { return x / (1.0f + exponential(-x)); }

/// The hyperbolic tangent.
FIREBREAK_GPU_INLINE float tangent_hyperbolic(float x) {
  return 1.0f - 2.0f / (1.0f + exponential(2.0f * x));
}

}  // namespace firebreak::workloads
