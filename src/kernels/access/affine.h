// SPDX-License-Identifier: Apache-2.0
/// A set of integers of one launch: base + stride * v + ..., each variable v in [0, last]. Computed in 128
/// bits, so that what wraps around in a register is seen. No allocation. Internal to src/kernels/access.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/access/expression.h"

namespace firebreak::access {

__extension__ using Wide = __int128;

struct AffineAxis {
  std::uint32_t variable;  ///< one that two values share has the same value in both, for one thread
  Wide stride;
  Wide last;  ///< a number of at least 0
};

/// A value may be any of the set; values of one thread move together along the variables that they share.
struct Affine {
  static constexpr std::size_t most_axes = 6;

  Wide base = 0;
  UnknownReason unknown = UnknownReason::None;  ///< reason other than None: the set says no more than the
                                                ///< type
  std::uint8_t axis_count = 0;
  std::array<AffineAxis, most_axes> axes;  ///< axes; those beyond the count hold nothing

  Affine() {}  // NOLINT(modernize-use-equals-default): that would write all axes
  Affine(const Affine& other) { *this = other; }
  Affine& operator=(const Affine& other) {
    base = other.base;
    unknown = other.unknown;
    axis_count = other.axis_count;
    for (std::size_t i = 0; i < axis_count; ++i) axes[i] = other.axes[i];
    return *this;
  }

  static Affine constant(Wide value) {
    Affine result;
    result.base = value;
    return result;
  }
  /// [low, high] in steps; one variable of its own.
  static Affine range(Wide low, Wide high, Wide step, std::uint32_t variable);
  /// Anything of that width.
  static Affine anything(std::uint8_t width_bits, UnknownReason reason, std::uint32_t variable);

  bool is_constant() const { return axis_count == 0 && unknown == UnknownReason::None; }
  Wide low() const {
    Wide result = base;
    for (std::size_t i = 0; i < axis_count; ++i)
      if (axes[i].stride < 0) result += axes[i].stride * axes[i].last;
    return result;
  }
  Wide high() const {
    Wide result = base;
    for (std::size_t i = 0; i < axis_count; ++i)
      if (axes[i].stride > 0) result += axes[i].stride * axes[i].last;
    return result;
  }
  /// The greatest number that divides the distance of any two members; 0 for constants.
  Wide step() const;
};

/// `variable`: for the axis that a result needs which is no sum of its operands' axes.
Affine add(const Affine& a, const Affine& b, bool subtract, std::uint8_t width_bits, std::uint32_t variable);
Affine scale(const Affine& a, Wide factor, std::uint8_t width_bits, std::uint32_t variable);
Affine multiply(const Affine& a, const Affine& b, std::uint8_t width_bits, std::uint32_t variable);
/// Returns a set that has both. The distance of their lowest members counts as a step.
Affine hull(const Affine& a, const Affine& b, std::uint32_t variable);
/// The number that a register of this width holds when it is read as signed or unsigned. Where the set goes
/// over the type's edge: anything, Wrapped.
Affine normalise(const Affine& a, std::uint8_t width_bits, bool is_signed, std::uint32_t variable);
/// The members of [low, high]. False: there are none.
bool restrict_to(Affine& a, Wide low, Wide high, std::uint32_t variable);
/// The members modulo a positive number, each in [0, modulus).
Affine floor_modulo(const Affine& a, Wide modulus, std::uint32_t variable);
/// Quotients by a positive number, rounded down or (truncate) towards zero.
Affine divide_by(const Affine& a, Wide divisor, bool truncate, std::uint32_t variable);

/// True for a number of 64 bits: a division of 128 bits is a call, and nearly all are of numbers of 64.
constexpr bool is_short(Wide value) { return value == static_cast<std::int64_t>(value); }
constexpr Wide floor_divide(Wide a, Wide b) {
  if (is_short(a) && is_short(b) && b > 0) {
    const auto x = static_cast<std::int64_t>(a);
    const auto y = static_cast<std::int64_t>(b);
    return x / y - (x % y < 0 ? 1 : 0);
  }
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
Wide greatest_common_divisor(Wide a, Wide b);

}  // namespace firebreak::access
