// SPDX-License-Identifier: Apache-2.0
/// A record has what was seen in a soak. It is plain data: printers only read it.
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
  std::map<std::string, std::uint32_t> faults_by_kind;  ///< kinds of the faults that were raised
  std::uint32_t agent_kills = 0;
  std::uint32_t tenants = 0;        ///< number of tenants that finished
  Takeovers takeovers;              ///< leaves out what was told while nobody had found a new agent yet
  std::uint64_t epochs = 0;         ///< begun: by promotions, and anew where both processes were lost
  std::uint32_t losses = 0;         ///< losses of both processes; each was started again and went on
  std::uint32_t stalls = 0;         ///< stalls of the agent
  std::uint32_t broken_links = 0;   ///< links between a tenant's process and the agent
  std::uint32_t failed_starts = 0;  ///< starts of tenants that had too few descriptors
  std::uint32_t refused = 0;        ///< visitors of a crowd that were refused; the others finished
  std::uint64_t steps = 0;          ///< told by tenants
  double longest_pause_ms = 0;      ///< longest pause of a tenant, between two steps
  double lasted_s = 0;
  Resources before;
  Resources after;
  std::vector<std::string> violations;  ///< promises that did not hold, one line each; empty: all held
};

/// Writes it for people.
std::string to_text(const Record& record);
/// Adds where and how it ran.
std::string to_json(const Record& record, const platform::Machine& machine, const std::string& command,
                    std::uint64_t seed);

}  // namespace firebreak::soak
