// SPDX-License-Identifier: Apache-2.0
/// What was seen in a soak. Plain data: whoever prints it only reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/platform/machine.h"
#include "soak/resources.h"
#include "soak/takeovers.h"

namespace firebreak::soak {

struct Record {
  std::uint32_t faults = 0;
  std::map<std::string, std::uint32_t> faults_by_target;
  std::map<std::string, std::uint32_t> faults_by_kind;  ///< of those that were raised
  std::uint32_t agent_kills = 0;
  std::uint32_t tenants = 0;        ///< that finished
  Takeovers takeovers;              ///< but for what was told while nobody had found a new agent yet
  std::uint64_t epochs = 0;         ///< begun: by promotions, and anew where both processes were lost
  std::uint32_t losses = 0;         ///< of both processes; each was started again and went on
  std::uint32_t stalls = 0;         ///< of the agent
  std::uint32_t broken_links = 0;   ///< between a tenant's process and the agent
  std::uint32_t failed_starts = 0;  ///< of tenants that had too few descriptors
  std::uint32_t refused = 0;        ///< of those who came in a crowd; the others finished
  std::uint64_t steps = 0;          ///< told by tenants
  double longest_pause_ms = 0;      ///< of any tenant, between two steps
  double lasted_s = 0;
  Resources before;
  Resources after;
  std::vector<std::string> violations;  ///< of the promises, one line each; empty: all held
};

/// For people.
std::string to_text(const Record& record);
/// With where and how it ran.
std::string to_json(const Record& record, const platform::Machine& machine, const std::string& command,
                    std::uint64_t seed);

}  // namespace firebreak::soak
