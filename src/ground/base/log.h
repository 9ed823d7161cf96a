// SPDX-License-Identifier: Apache-2.0
/// Logging goes through spdlog's default logger; this sets it up once, at the top of main().
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

namespace firebreak {

/// Messages go to standard error as "TIME LEVEL PROGRAM message". The level is FIREBREAK_LOG
/// (trace, debug, info, warn, error, off), otherwise `default_level`.
void set_up_logging(const std::string& program, const std::string& default_level = "warn");

/// A pattern of spdlog's in which "%*" is the message on one line, with what cannot be printed as \x00.
std::unique_ptr<spdlog::formatter> printable_lines(const std::string& pattern);

}  // namespace firebreak
