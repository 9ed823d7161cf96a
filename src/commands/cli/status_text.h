// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace firebreak::cli {

/// The agent's status, which is JSON, as a person reads it; without a line end. What it does not understand
/// it gives back as it is.
std::string status_text(const std::string& json);

}  // namespace firebreak::cli
