// SPDX-License-Identifier: Apache-2.0
/// Starting a process as a SpawnRequest says; what RealKernel::spawn does.
#pragma once

#include "os/kernel.h"

namespace firebreak::os {

/// NotFound when there is no such program; any later failure before the program runs is an error as well.
Result<pid_t> spawn_process(const SpawnRequest& request);

}  // namespace firebreak::os
