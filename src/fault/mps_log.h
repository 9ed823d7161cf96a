// SPDX-License-Identifier: Apache-2.0
/// The server.log of an MPS server: which of its lines tell of a fault. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace firebreak::fault {

struct MpsLogLine {
  std::string text;             ///< without the time and the writer in front
  std::optional<pid_t> client;  ///< the client that it names; it was seen to be the wrong one
};

/// Reads one line, "[2026-11-21 14:39:55.123 Server  4711] ...". Empty when it tells of no fault, or has not
/// that form: a client's own output may stand in the same file.
std::optional<MpsLogLine> parse_mps_log(std::string_view line);

}  // namespace firebreak::fault
