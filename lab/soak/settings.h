// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "soak/plan.h"

namespace firebreak::soak {

struct Settings {
  std::string programs;   ///< the folder with firebreak, firebreakd and the sample tenants
  std::string agent_log;  ///< a file that the agent's log is added to
  std::string directory;  ///< place for the agent and the outputs; private, short, empty
  std::uint64_t seed = 1;
  std::uint32_t tenants = 20;  ///< least number of tenants; more where the faults need them
  std::uint32_t at_once = 4;
  std::uint32_t faults = 60;
  Milliseconds limit{};  ///< no fault is raised after so long, whatever is missing; 0: no limit
  std::uint32_t agent_kills = 3;
  std::vector<std::string> workloads = {"decode", "denoise", "scribble"};
  std::vector<std::string> kinds;  ///< kinds of faults that are raised
  std::vector<Target> targets;     ///< targets of the disturbances
  bool edges = false;              ///< forked children, slow agents, and the disturbances of edge_targets
  std::uint32_t agent_descriptors = 0;  ///< descriptors that the agent may have; 0: as many as we
  std::string size = "small";
  std::uint64_t steps = 300;
  Milliseconds pace{20};
  Milliseconds patience{120'000};  ///< limit for anything that must happen
};

}  // namespace firebreak::soak
