// SPDX-License-Identifier: Apache-2.0
/// Counts what a soak could leave behind, while nobody works.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/os/kernel.h"

namespace firebreak::soak {

struct Resources {
  std::map<std::string, std::size_t> agent_descriptors;  ///< keyed by what they are of, numbers left out
  std::uint64_t agent_resident_kib = 0;
  std::map<std::string, std::size_t> supervisor_descriptors;  ///< keeps what outlives the agent
  std::uint64_t supervisor_resident_kib = 0;
  std::size_t shared_memory_files = 0;  ///< names in /dev/shm
  std::size_t tenants = 0;              ///< tenants that the agent knows
};

/// Counts everything but the tenants.
Resources count_resources(os::Kernel& kernel, pid_t supervisor, pid_t agent);

/// Growth beyond what may come once, whatever the number of faults: one line each.
std::vector<std::string> leaks(const Resources& before, const Resources& after);

/// Tells whether the process has `mark` in its environment.
bool is_ours(os::Kernel& kernel, pid_t pid, const std::string& mark);
/// Lists all of those.
std::vector<pid_t> processes_with(os::Kernel& kernel, const std::string& mark);

}  // namespace firebreak::soak
