// SPDX-License-Identifier: Apache-2.0
/// What a process takes of the machine, as procfs tells it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "ground/os/kernel.h"

namespace firebreak::scale {

struct ProcessCost {
  std::uint64_t processes = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t resident_kib = 0;
  std::uint64_t cpu_ms = 0;  ///< since it began
};

ProcessCost cost_of(os::Kernel& kernel, pid_t pid);
/// Zeros where the process has gone meanwhile.
ProcessCost& operator+=(ProcessCost& all, const ProcessCost& one);

}  // namespace firebreak::scale
