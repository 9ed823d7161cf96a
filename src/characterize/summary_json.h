// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "characterize/summary.h"

namespace firebreak::characterize {

/// Whether every single value goes along with the percentiles.
enum class Values { None, All };

nlohmann::ordered_json summary_json(const Summary& summary, Values values = Values::None);

}  // namespace firebreak::characterize
