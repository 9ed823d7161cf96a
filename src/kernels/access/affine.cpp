// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/affine.h"

#include <algorithm>
#include <numeric>

namespace firebreak::access {
namespace {

// Values of a launch come nowhere near; what goes beyond counts as wrapped.
constexpr Wide limit = Wide{1} << 100;

bool is_too_large(Wide value) { return value > limit || value < -limit; }

// A loop counter that stands still: it has a stride, which must not get lost.
bool stands_still(const Affine& a) {
  for (std::size_t i = 0; i < a.axis_count; ++i)
    if (a.axes[i].last == 0) return true;
  return false;
}

UnknownReason either(UnknownReason a, UnknownReason b) { return a != UnknownReason::None ? a : b; }

bool is_within_limit(const Affine& a) { return !is_too_large(a.low()) && !is_too_large(a.high()); }

void remove_axis(Affine& a, std::size_t which) {
  a.axes[which] = a.axes[static_cast<std::size_t>(a.axis_count - 1)];
  --a.axis_count;
}

}  // namespace

Wide greatest_common_divisor(Wide a, Wide b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  if (is_short(a) && is_short(b)) return std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Affine Affine::range(Wide low, Wide high, Wide step, std::uint32_t variable) {
  Affine result;
  result.base = low;
  if (high <= low) return result;
  step = std::max<Wide>(step, 1);
  result.axes[0] = {variable, step, (high - low) / step};
  result.axis_count = result.axes[0].last > 0 ? 1 : 0;
  return result;
}

Affine Affine::anything(std::uint8_t width_bits, UnknownReason reason, std::uint32_t variable) {
  Affine result = range(0, (Wide{1} << width_bits) - 1, 1, variable);
  if (width_bits > 1) result.unknown = reason;
  return result;
}

Wide Affine::step() const {
  Wide result = 0;
  for (std::size_t i = 0; i < axis_count; ++i) result = greatest_common_divisor(result, axes[i].stride);
  return result;
}

Affine add(const Affine& a, const Affine& b, bool subtract, std::uint8_t width_bits, std::uint32_t variable) {
  Affine result = a;
  result.base = subtract ? a.base - b.base : a.base + b.base;
  result.unknown = either(a.unknown, b.unknown);
  for (std::size_t i = 0; i < b.axis_count; ++i) {
    AffineAxis axis = b.axes[i];
    if (subtract) axis.stride = -axis.stride;
    std::size_t at = 0;
    while (at < result.axis_count && result.axes[at].variable != axis.variable) ++at;
    if (at < result.axis_count) {
      result.axes[at].stride += axis.stride;
      result.axes[at].last = std::max(result.axes[at].last, axis.last);
      if (result.axes[at].stride == 0) remove_axis(result, at);
      continue;
    }
    if (result.axis_count == Affine::most_axes) {
      if (stands_still(a) || stands_still(b))
        return Affine::anything(width_bits, UnknownReason::Loop, variable);
      // The set has no room: both operands count as plain ranges.
      const Affine other = subtract ? scale(b, -1, width_bits, variable) : b;
      const Wide step = greatest_common_divisor(a.step(), b.step());
      Affine plain = Affine::range(a.low() + other.low(), a.high() + other.high(), step, variable);
      plain.unknown = either(a.unknown, b.unknown);
      if (!is_within_limit(plain)) return Affine::anything(width_bits, UnknownReason::Wrapped, variable);
      return plain;
    }
    result.axes[result.axis_count++] = axis;
  }
  if (!is_within_limit(result)) result = Affine::anything(width_bits, UnknownReason::Wrapped, variable);
  return result;
}

Affine scale(const Affine& a, Wide factor, std::uint8_t width_bits, std::uint32_t variable) {
  // Limits on both factors keep the product below 2^127.
  if (factor == 0) return Affine::constant(0);
  const Wide low = a.low();
  const Wide high = a.high();
  const Wide widest = std::max(high < 0 ? -high : high, low < 0 ? -low : low);
  const Wide size = factor < 0 ? -factor : factor;
  const bool fits = widest >> 49 == 0 && size >> 49 == 0;  // the fast way does without a division of 128 bits
  if (!fits && widest > limit / size) return Affine::anything(width_bits, UnknownReason::Wrapped, variable);
  Affine result = a;
  result.base *= factor;
  for (std::size_t i = 0; i < result.axis_count; ++i) result.axes[i].stride *= factor;
  return result;
}

Affine multiply(const Affine& a, const Affine& b, std::uint8_t width_bits, std::uint32_t variable) {
  if (b.is_constant()) return scale(a, b.base, width_bits, variable);
  if (a.is_constant()) return scale(b, a.base, width_bits, variable);
  if (stands_still(a) || stands_still(b)) return Affine::anything(width_bits, UnknownReason::Loop, variable);
  constexpr Wide most = Wide{1} << 60;
  const std::array<Wide, 4> ends{a.low(), a.high(), b.low(), b.high()};
  for (const Wide end : ends)
    if (end > most || end < -most) return Affine::anything(width_bits, UnknownReason::Wrapped, variable);
  const std::array<Wide, 4> corners{ends[0] * ends[2], ends[0] * ends[3], ends[1] * ends[2],
                                    ends[1] * ends[3]};
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  Affine result = Affine::range(*low, *high, 1, variable);
  result.unknown = either(a.unknown, b.unknown);
  return result;
}

Affine hull(const Affine& a, const Affine& b, std::uint32_t variable) {
  if (a.is_constant() && b.is_constant() && a.base == b.base) return a;
  Wide step = greatest_common_divisor(a.step(), b.step());
  step = greatest_common_divisor(step, a.low() - b.low());
  Affine result = Affine::range(std::min(a.low(), b.low()), std::max(a.high(), b.high()), step, variable);
  result.unknown = either(a.unknown, b.unknown);
  return result;
}

Affine normalise(const Affine& a, std::uint8_t width_bits, bool is_signed, std::uint32_t variable) {
  const Wide span = Wide{1} << width_bits;
  const Wide lowest = is_signed ? -(Wide{1} << (width_bits - 1)) : 0;
  Affine result = a;
  const Wide low = a.low() - lowest;
  const Wide high = a.high() - lowest;
  if (low >= 0 && high < span) return result;
  // Shifts divide by the span, and round down.
  const Wide turns = low >> width_bits;
  if (high >> width_bits == turns) {
    result.base -= turns * span;
    return result;
  }
  result = Affine::range(lowest, lowest + span - 1, 1, variable);
  result.unknown = either(a.unknown, UnknownReason::Wrapped);
  return result;
}

bool restrict_to(Affine& a, Wide low, Wide high, std::uint32_t variable) {
  const Wide old_low = a.low();
  const Wide old_high = a.high();
  if (low > old_high || high < old_low) return false;
  if (low <= old_low && high >= old_high) return true;
  const Wide step = std::max<Wide>(a.step(), 1);
  const Wide skipped = low <= old_low ? 0 : (low - old_low + step - 1) / step;
  const Wide first = old_low + skipped * step;
  if (first > std::min(high, old_high)) return false;
  const UnknownReason unknown = a.unknown;
  a = Affine::range(first, std::min(high, old_high), step, variable);
  a.unknown = unknown;
  return true;
}

Affine floor_modulo(const Affine& a, Wide modulus, std::uint32_t variable) {
  const Wide turns = floor_divide(a.low(), modulus);
  if (a.unknown == UnknownReason::None && floor_divide(a.high(), modulus) == turns) {
    Affine result = a;
    result.base -= turns * modulus;
    return result;
  }
  // The members are all equal modulo this.
  const Wide step = greatest_common_divisor(a.step(), modulus);
  const Wide first = a.base - floor_divide(a.base, step) * step;
  return Affine::range(first, modulus - 1, step, variable);
}

Affine divide_by(const Affine& a, Wide divisor, bool truncate, std::uint32_t variable) {
  bool is_exact = a.base % divisor == 0;
  for (std::size_t i = 0; i < a.axis_count; ++i) is_exact = is_exact && a.axes[i].stride % divisor == 0;
  if (is_exact) {
    Affine result = a;
    result.base /= divisor;
    for (std::size_t i = 0; i < a.axis_count; ++i) result.axes[i].stride /= divisor;
    return result;
  }
  const Wide low = truncate ? a.low() / divisor : floor_divide(a.low(), divisor);
  const Wide high = truncate ? a.high() / divisor : floor_divide(a.high(), divisor);
  Affine result = Affine::range(low, high, 1, variable);
  result.unknown = a.unknown;
  return result;
}

}  // namespace firebreak::access
