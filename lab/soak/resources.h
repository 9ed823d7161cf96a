// SPDX-License-Identifier: Apache-2.0
/// What a soak could leave behind, counted while nobody works.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/os/kernel.h"

namespace firebreak::soak {

struct Resources {
  std::map<std::string, std::size_t> agent_descriptors;  ///< by what they are of, numbers left out
  std::uint64_t agent_resident_kib = 0;
  std::map<std::string, std::size_t> supervisor_descriptors;  ///< it keeps what outlives the agent
  std::uint64_t supervisor_resident_kib = 0;
  std::size_t shared_memory_files = 0;  ///< names in /dev/shm
  std::size_t tenants = 0;              ///< that the agent knows
};

/// All but the tenants.
Resources count_resources(os::Kernel& kernel, pid_t supervisor, pid_t agent);

/// What has grown beyond what may come once, whatever the number of faults: one line each.
std::vector<std::string> leaks(const Resources& before, const Resources& after);

/// Whether the process has `mark` in its environment.
bool is_ours(os::Kernel& kernel, pid_t pid, const std::string& mark);
/// All of those.
std::vector<pid_t> processes_with(os::Kernel& kernel, const std::string& mark);

}  // namespace firebreak::soak
