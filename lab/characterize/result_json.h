// SPDX-License-Identifier: Apache-2.0
/// Parts of a result as JSON, for the file and for the page.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "characterize/result.h"

namespace firebreak::characterize {

nlohmann::ordered_json machine_json(const platform::Machine& machine);
nlohmann::ordered_json expected_json(const Expected& expected);
nlohmann::ordered_json run_json(const Run& run);

}  // namespace firebreak::characterize
