// SPDX-License-Identifier: Apache-2.0
/// The words in which the agent describes a pair: its phase, and how far its standby is. The state machine is
/// in agent/tenants/pair.
#pragma once

#include <string_view>

#include "ground/base/result.h"

namespace firebreak::pair {

enum class Phase {
  Empty,       ///< nobody has joined yet
  Serving,     ///< the active works; `standby` says whether it is protected
  Suspecting,  ///< a fault was seen that may end the active; waiting for the fence, or for the all-clear
  Orphaned,   ///< the active is fenced; its standby has joined but is not ready yet, and has so long for that
  Promoting,  ///< the standby was told; waiting for its first completed kernel, or step that it committed
  Lost,       ///< the active is fenced and nobody can take over; a new active may begin where it stopped
  Finished,   ///< the tenant is done, in good order
};

enum class Standby { None, Joined, Ready };

const char* to_string(Phase phase);
/// Finds a phase by its name; InvalidArgument.
Result<Phase> phase_from(std::string_view name);
Result<Standby> standby_from(std::string_view name);
const char* to_string(Standby standby);

}  // namespace firebreak::pair
