// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ground/base/result.h"
#include "inject/kind.h"

namespace firebreak::commands {

/// Has the agent at `socket_path` raise the fault in the active process of a tenant that allows it, at its
/// `commits`-th commit from now. Waits for that; CLOCK_MONOTONIC nanoseconds. The reason where it is refused.
Result<std::int64_t> inject_into(const std::string& socket_path, const std::string& tenant,
                                 const inject::Kind& kind, std::uint32_t commits);

}  // namespace firebreak::commands
