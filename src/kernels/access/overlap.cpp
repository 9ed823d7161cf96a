// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/overlap.h"

#include <algorithm>
#include <array>

namespace firebreak::access {
namespace {

struct Span {
  Wide stride = 0;
  Wide last = 0;
};

// start of b - start of a: base + sum of stride * [0, last], strides positive, the greatest first.
struct Difference {
  Wide base = 0;
  std::size_t count = 0;
  std::array<Span, 2 * Affine::most_axes> spans;
};

void add_axes(Difference& difference, const Affine& from, Wide sign) {
  for (std::size_t i = 0; i < from.axis_count; ++i) {
    const Wide stride = from.axes[i].stride * sign;
    const Wide last = from.axes[i].last;
    if (stride < 0) difference.base += stride * last;
    difference.spans[difference.count++] = {stride < 0 ? -stride : stride, last};
  }
}

Difference difference_of(const Affine& a, const Affine& b) {
  Difference difference;
  difference.base = b.base - a.base;
  add_axes(difference, a, -1);
  add_axes(difference, b, 1);
  std::sort(difference.spans.begin(),
            difference.spans.begin() + static_cast<std::ptrdiff_t>(difference.count),
            [](const Span& x, const Span& y) { return x.stride > y.stride; });
  return difference;
}

}  // namespace

bool may_meet(const StridedBox& a, const StridedBox& b) {
  if (a.end() <= b.begin() || b.end() <= a.begin()) return false;
  // The boxes meet where the difference lies in [lowest, highest].
  const Wide lowest = 1 - b.width_bytes;
  const Wide highest = a.width_bytes - 1;
  const Difference difference = difference_of(a.starts, b.starts);
  Wide modulus = 0;
  for (std::size_t kept = 0; kept < difference.count; ++kept) {
    modulus = greatest_common_divisor(modulus, difference.spans[kept].stride);
    // The first `kept` + 1 spans only add multiples of the modulus; the others this much.
    Wide rest = 0;
    for (std::size_t i = kept + 1; i < difference.count; ++i)
      rest += difference.spans[i].stride * difference.spans[i].last;
    // Is there a multiple of the modulus that brings [base, base + rest] to [lowest, highest]?
    const Wide first = -floor_divide(-(lowest - difference.base - rest), modulus);
    const Wide last = floor_divide(highest - difference.base, modulus);
    if (first > last) return false;
  }
  return true;
}

}  // namespace firebreak::access
