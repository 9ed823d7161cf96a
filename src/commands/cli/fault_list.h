// SPDX-License-Identifier: Apache-2.0
/// The agent's list of its last faults, asked for and followed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {

/// Protocol: the agent does not tell them to us.
Result<nlohmann::json> faults_of(link::AgentLink& agent);

/// A fault in words, each line with its newline; empty: nothing of it is told.
using FaultWords = std::function<std::string(const nlohmann::json& fault)>;

/// Prints `head`, the list, and each fault as soon as it is in it, until somebody ends us, which is no
/// failure, or the agent is gone.
Status follow_faults(const std::string& socket_path, const std::string& head, const FaultWords& words);
/// The same in columns, or as one JSON document a line.
Status follow_faults(const std::string& socket_path, bool as_json);

/// True when the agent there tells us of faults, and of those processes: whoever else told of them might
/// contradict it.
bool is_told_by_agent(const std::string& socket_path, const std::vector<pid_t>& pids);

/// "2026-11-29T08:10:05Z", by what the clocks of this machine say now.
std::string moment_in_utc(std::int64_t at_ns);

}  // namespace firebreak::cli
