// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "characterize/summary.h"
#include "ground/base/spread_json.h"

namespace firebreak::characterize {

nlohmann::ordered_json summary_json(const Summary& summary, Values values = Values::None);

}  // namespace firebreak::characterize
