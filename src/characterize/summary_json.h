// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "characterize/summary.h"

namespace firebreak::characterize {

nlohmann::ordered_json summary_json(const Summary& summary);

}  // namespace firebreak::characterize
