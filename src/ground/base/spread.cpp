// SPDX-License-Identifier: Apache-2.0
#include "ground/base/spread.h"

#include <algorithm>
#include <cmath>

namespace firebreak {
namespace {

double nearest_rank(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  if (values.empty()) return spread;
  std::ranges::sort(values);
  spread.count = values.size();
  spread.min = values.front();
  spread.p25 = nearest_rank(values, 0.25);
  spread.p50 = nearest_rank(values, 0.50);
  spread.p75 = nearest_rank(values, 0.75);
  spread.p99 = nearest_rank(values, 0.99);
  spread.max = values.back();
  spread.values = std::move(values);
  return spread;
}

}  // namespace firebreak
