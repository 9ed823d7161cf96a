// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ground/base/result.h"

namespace firebreak::commands {

struct ScheduleOptions {
  std::string path;
  std::optional<std::uint64_t> seed;  ///< empty: one is drawn; it is printed
  std::string socket_path;            ///< the agent's, for faults in its tenants
  bool json = false;                  ///< one JSON object an event instead of text
};

/// Raises the faults that the schedule's file and the seed say, one after the other, and prints each; then
/// the exit status. A fault waits for the end of the one before it.
Result<int> run_schedule(const ScheduleOptions& options);

}  // namespace firebreak::commands
