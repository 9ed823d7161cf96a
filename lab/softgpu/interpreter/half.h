// SPDX-License-Identifier: Apache-2.0
/// The 16-bit float formats: conversions to and from float and double, bit exact (IEEE 754 binary16 and
/// bfloat16).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/ptx/opcode.h"

namespace firebreak::softgpu {

struct Half {
  std::uint16_t bits = 0;
};
struct Bfloat {
  std::uint16_t bits = 0;
};
/// f16x2 and bf16x2: the low half first.
struct Half2 {
  Half low, high;
};
struct Bfloat2 {
  Bfloat low, high;
};

inline constexpr std::uint16_t canonical_nan_16 = 0x7FFF;

inline float to_float(Bfloat value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
inline float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7FFFU) << 13;
  // The exponent is off by 112 (127 - 15); a multiplication mends that for subnormals too.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t special = (value.bits & 0x7C00U) == 0x7C00U ? 0x7F80'0000U : 0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// Round to nearest even; NaN becomes the canonical one.
inline Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  if (magnitude >= 0x4780'0000U) {  // 65536 and above
    if (magnitude > 0x7F80'0000U) return {canonical_nan_16};
    return {static_cast<std::uint16_t>(sign | 0x7C00U)};
  }
  if (magnitude < 0x3880'0000U) {  // subnormal: the last place of 0.5 is that of the result
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    magnitude = std::bit_cast<std::uint32_t>(shifted) - 0x3F00'0000U;
  } else {
    magnitude = (magnitude - 0x3800'0000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | magnitude)};
}
inline Bfloat to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {canonical_nan_16};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

/// a + b with the last bit set when inexact, so that rounding once more to fewer bits is right.
double add_to_odd(double a, double b);
/// The same for a narrowing.
float narrow_to_odd(double value);

/// Rounded once, from any double that is exact or rounded to odd.
inline Half to_half(double value) { return to_half(narrow_to_odd(value)); }
inline Bfloat to_bfloat(double value) { return to_bfloat(narrow_to_odd(value)); }

/// Any rounding is allowed (Rn, Rna, Rz, Rm, Rp).
Half to_half(double value, ptx::Rounding rounding);
Bfloat to_bfloat(double value, ptx::Rounding rounding);
/// tf32: a float whose low 13 bits are zero.
float to_tf32(double value, ptx::Rounding rounding);

}  // namespace firebreak::softgpu
