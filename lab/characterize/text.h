// SPDX-License-Identifier: Apache-2.0
/// Results for a terminal.
#pragma once

#include <string>

#include "characterize/summary.h"

namespace firebreak::characterize {

/// A line a kind: who dies of what, who sees it first and when, the culprit. Then what was not as expected.
std::string render(const Summary& summary);

}  // namespace firebreak::characterize
