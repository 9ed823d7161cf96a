// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "ground/base/spread.h"

namespace firebreak {

/// Says whether every single value goes along with the percentiles.
enum class Values { All, None };

inline nlohmann::ordered_json spread_json(const Spread& spread, Values values) {
  nlohmann::ordered_json out{{"count", spread.count},
                             {"p50", spread.p50},
                             {"p99", spread.p99},
                             {"min", spread.min},
                             {"max", spread.max}};
  if (values == Values::All) out["values"] = spread.values;
  return out;
}

}  // namespace firebreak
