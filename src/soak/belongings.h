// SPDX-License-Identifier: Apache-2.0
/// What a soak could leave behind, counted while nobody works.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "os/kernel.h"

namespace firebreak::soak {

struct Belongings {
  std::size_t agent_descriptors = 0;
  std::uint64_t agent_resident_kib = 0;
  std::size_t supervisor_descriptors = 0;  ///< it keeps what outlives the agent
  std::uint64_t supervisor_resident_kib = 0;
  std::size_t shared_memory_files = 0;  ///< names in /dev/shm
  std::size_t tenants = 0;              ///< that the agent knows
};

/// All but the tenants.
Belongings count_belongings(os::Kernel& kernel, pid_t supervisor, pid_t agent);

/// What has grown beyond what is not a leak: one line each. Descriptors and memory that come once, whatever
/// the number of `faults`, are none; a leak is at least one a ten faults.
std::vector<std::string> leaks(const Belongings& before, const Belongings& after, std::uint32_t faults);

/// Processes with `mark` in their environment.
std::vector<pid_t> processes_with(os::Kernel& kernel, const std::string& mark);

}  // namespace firebreak::soak
