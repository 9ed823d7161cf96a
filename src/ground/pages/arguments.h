// SPDX-License-Identifier: Apache-2.0
/// How all programs read their command line, and what they say of one that they do not understand.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace firebreak::pages {

/// The status of a command line that is not understood.
inline constexpr int usage_status = 2;

/// Nothing: the program goes on. Otherwise the status to end with, and all has been said: what was asked for
/// (help, the version), or one line on standard error, with the word that may have been meant.
std::optional<int> read_arguments(CLI::App& app, const std::string& program, int argument_count,
                                  char** arguments);

}  // namespace firebreak::pages
