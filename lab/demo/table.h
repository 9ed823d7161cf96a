// SPDX-License-Identifier: Apache-2.0
/// The play for a terminal: one table, the recoveries, a timeline of the third act, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "demo/judge.h"
#include "demo/play.h"

namespace firebreak::demo {

std::string render_table(const Play& play);
/// Lines of at most 100 columns; empty when the third act was not played.
std::string render_timeline(const Play& play);
std::string render_verdict(const std::vector<Check>& checks);

}  // namespace firebreak::demo
