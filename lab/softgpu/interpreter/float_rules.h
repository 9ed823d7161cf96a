// SPDX-License-Identifier: Apache-2.0
/// PTX adds these rules to IEEE 754 arithmetic: flushed subnormals, saturation, canonical NaNs, other
/// roundings.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "softgpu/interpreter/micro_op.h"

namespace firebreak::softgpu {

inline constexpr float canonical_nan = std::bit_cast<float>(0x7FFF'FFFFU);

/// Single precision has one NaN; double keeps what the operation made.
inline float canonical(float value) { return value == value ? value : canonical_nan; }
inline double canonical(double value) { return value; }

inline float flushed(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}
inline double flushed(double value) { return value; }

/// [0, 1], NaN and -0 become +0.
template <class T>
T saturated(T value) {
  if (!(value > 0)) return 0;
  return value > 1 ? T{1} : value;
}

inline int host_rounding(ptx::Rounding rounding) {
  switch (rounding) {
    case ptx::Rounding::Rz:
      return FE_TOWARDZERO;
    case ptx::Rounding::Rm:
      return FE_DOWNWARD;
    case ptx::Rounding::Rp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

/// function(values...) computed under that rounding. The call goes through a volatile pointer so that the
/// compiler cannot move the arithmetic across the change of mode.
template <auto function, class... T>
auto in_rounding(ptx::Rounding rounding, T... values) {
  auto* volatile opaque = function;
  const int mode = host_rounding(rounding);
  if (mode == FE_TONEAREST) return opaque(values...);
  std::fesetround(mode);
  const auto result = opaque(values...);
  std::fesetround(FE_TONEAREST);
  return result;
}

}  // namespace firebreak::softgpu
