// SPDX-License-Identifier: Apache-2.0
/// Logging goes through spdlog's default logger; this sets it up once, at the top of main().
#pragma once

#include <string>

namespace firebreak {

/// Messages go to standard error as "TIME LEVEL PROGRAM message". The level is FIREBREAK_LOG
/// (trace, debug, info, warn, error, off), otherwise `default_level`.
void set_up_logging(const std::string& program, const std::string& default_level = "warn");

}  // namespace firebreak
