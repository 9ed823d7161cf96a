// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/spread_json.h"
#include "characterize/summary.h"

namespace firebreak::characterize {

nlohmann::ordered_json summary_json(const Summary& summary, Values values = Values::None);

}  // namespace firebreak::characterize
