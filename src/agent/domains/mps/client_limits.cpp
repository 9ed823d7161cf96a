// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/client_limits.h"

namespace firebreak::mps {

Status check_limits(const ClientLimits& limits) {
  if (limits.sm_percent <= 100) return {};
  return fail(ErrorCode::InvalidArgument,
              "a share of " + std::to_string(limits.sm_percent) + " % of the SMs is more than there are",
              "use 1 to 100");
}

Environment environment_of(const ClientLimits& limits) {
  Environment environment;
  if (limits.sm_percent != 0) {
    environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(limits.sm_percent));
  }
  // "0" is the first GPU that the client sees, whatever its number in the machine.
  if (limits.memory_mib != 0) {
    environment.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                             "0=" + std::to_string(limits.memory_mib) + "M");
  }
  return environment;
}

}  // namespace firebreak::mps
