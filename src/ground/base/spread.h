// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace firebreak {

/// The spread of one figure over many runs. Percentiles are values that occurred (nearest rank), nothing in
/// between.
struct Spread {
  std::size_t count = 0;
  double min = 0;
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double p99 = 0;
  double max = 0;
  std::vector<double> values;  ///< sorted
};

/// Returns all zeroes for no value.
Spread spread_of(std::vector<double> values);

}  // namespace firebreak
