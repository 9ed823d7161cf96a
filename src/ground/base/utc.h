// SPDX-License-Identifier: Apache-2.0
/// The wall clock as everybody here writes it: in UTC and in one form, so that two accounts of a moment
/// agree.
#pragma once

#include <chrono>
#include <string>

namespace firebreak {

using WallTime = std::chrono::system_clock::time_point;

/// "2026-11-29T08:10:05Z".
std::string in_utc(WallTime at);
/// "2026-11-29T08:10:05.123Z".
std::string in_utc_ms(WallTime at);

}  // namespace firebreak
