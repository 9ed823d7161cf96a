// SPDX-License-Identifier: Apache-2.0
/// Tells what the launches in a guard page say to somebody outside, also when the process is dead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/abi/guard_page.h"

namespace firebreak::guard {

enum class LaunchState {
  Unknown,  ///< the page does not tell
  Running,  ///< a launch is known to be under way
  Ended,    ///< the page says that all launches have ended
};

/// Holds for a process that is dead, or that launches nothing meanwhile: for a living one it may be over.
LaunchState state_of(const abi::GuardWork& work);

/// "running", "ended", "unknown".
const char* to_string(LaunchState state);

enum class Since {
  Now,     ///< launches that are not known to have ended
  Lately,  ///< the same some milliseconds ago: for what was seen a moment ago
};
/// The names of the kernels under way, the last launched first, each once: one of them, or several, is. Empty
/// where that is not known, or none is. As the tenant wrote them, but without what would disguise a line.
std::vector<std::string> kernels_in_flight(const abi::GuardWork& work, Since since);

/// "kernel `scale`", "one of `scale`, `add`", "one of `scale`, `add`, `copy` and 4 others"; empty for none.
std::string describe_kernels(const std::vector<std::string>& kernels);

}  // namespace firebreak::guard
