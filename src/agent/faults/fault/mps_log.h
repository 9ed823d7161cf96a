// SPDX-License-Identifier: Apache-2.0
/// The server.log of an MPS server: which of its lines tell of a fault, or that somebody comes or goes. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace firebreak::fault {

enum class MpsLogEvent {
  Fault,       ///< the server handles a fault
  ClientLeft,  ///< the connection to a client broke: it ended or became another program, in order or not
  Arrival,     ///< a client has come, or a server for one; MPS can be asked who
};

struct MpsLogLine {
  MpsLogEvent event = MpsLogEvent::Fault;
  std::string text;             ///< text without the time and the writer in front
  std::optional<pid_t> client;  ///< the client that it names; of a fault it was seen to be the wrong one
};

/// Reads one line, "[2026-11-21 14:39:55.123 Server  4711] ...". Empty when it tells of none of these, or has
/// not that form: a client's own output may stand in the same file. A killed client's line was seen at once,
/// 100 to 160 ms before its Xid and before its end (results/h100/characterization.json).
std::optional<MpsLogLine> parse_mps_log(std::string_view line);

}  // namespace firebreak::fault
