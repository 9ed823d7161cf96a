// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/half.h"

#include <limits>

namespace firebreak::softgpu {

namespace {

/// Moves the magnitude of `rounded` by one place towards `error`'s side if that makes its last bit odd.
template <class Float, class Bits>
Float make_odd(Float rounded, bool error_is_outward) {
  auto bits = std::bit_cast<Bits>(rounded);
  if ((bits & 1U) == 0) bits += error_is_outward ? Bits{1} : ~Bits{0};
  return std::bit_cast<Float>(bits);
}

bool rounds_up(double rest, bool last_bit, bool negative, ptx::Rounding rounding) {
  switch (rounding) {
    case ptx::Rounding::Rz:
      return false;
    case ptx::Rounding::Rm:
      return negative && rest > 0;
    case ptx::Rounding::Rp:
      return !negative && rest > 0;
    case ptx::Rounding::Rna:
      return rest >= 0.5;
    default:
      return rest > 0.5 || (rest == 0.5 && last_bit);
  }
}

/// The bits of `value` in a format of that many exponent and mantissa bits, sign first; NaN is the caller's.
template <int exponent_bits, int mantissa_bits>
std::uint32_t round_bits(double value, ptx::Rounding rounding) {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr int least_exponent = 1 - bias;
  constexpr std::uint32_t infinity = ((1U << exponent_bits) - 1U) << mantissa_bits;
  const bool negative = std::signbit(value);
  const std::uint32_t sign = negative ? 1U << (exponent_bits + mantissa_bits) : 0U;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | infinity;
  int exponent = least_exponent;
  if (magnitude >= std::ldexp(1.0, least_exponent)) exponent = std::ilogb(magnitude);
  std::uint32_t bits = infinity;
  if (exponent <= bias) {
    const double scaled = std::ldexp(magnitude, mantissa_bits - exponent);
    const double whole = std::floor(scaled);
    const auto places = static_cast<std::uint32_t>(whole);
    const bool up = rounds_up(scaled - whole, (places & 1U) != 0, negative, rounding);
    bits = (static_cast<std::uint32_t>(exponent - least_exponent) << mantissa_bits) + places + (up ? 1U : 0U);
  }
  const bool to_finite = rounding == ptx::Rounding::Rz || (rounding == ptx::Rounding::Rm && !negative) ||
                         (rounding == ptx::Rounding::Rp && negative);
  if (bits >= infinity) bits = to_finite ? infinity - 1U : infinity;
  return sign | bits;
}

}  // namespace

double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  if (error == 0) return sum;
  return make_odd<double, std::uint64_t>(sum, (error > 0) == (sum > 0));
}

float narrow_to_odd(double value) {
  const auto narrow = static_cast<float>(value);
  const auto back = static_cast<double>(narrow);
  if (back == value || std::isnan(value)) return narrow;
  if (std::isinf(narrow)) return std::copysign(std::numeric_limits<float>::max(), narrow);
  if (narrow == 0) return std::copysign(std::numeric_limits<float>::denorm_min(), narrow);
  return make_odd<float, std::uint32_t>(narrow, std::fabs(value) > std::fabs(back));
}

Half to_half(double value, ptx::Rounding rounding) {
  if (std::isnan(value)) return {canonical_nan_16};
  return {static_cast<std::uint16_t>(round_bits<5, 10>(value, rounding))};
}

Bfloat to_bfloat(double value, ptx::Rounding rounding) {
  if (std::isnan(value)) return {canonical_nan_16};
  return {static_cast<std::uint16_t>(round_bits<8, 7>(value, rounding))};
}

float to_tf32(double value, ptx::Rounding rounding) {
  if (std::isnan(value)) return std::bit_cast<float>(0x7FFF'FFFFU);
  return std::bit_cast<float>(round_bits<8, 10>(value, rounding) << 13);
}

}  // namespace firebreak::softgpu
