// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "os/kernel.h"

namespace firebreak::watch {

/// Whether a process that had a UVM descriptor is about to leave the GPU, in words: Linux has begun to end it
/// (its pidfd tells only when the driver has taken its channels down, 50 ms after the Xid that its death
/// causes; results/h100/characterization.json), or it has closed the descriptor. Empty: it uses the GPU, or
/// nothing is known. Costs about 30 us a process.
std::optional<std::string> departure_of(os::Kernel& kernel, pid_t pid);

}  // namespace firebreak::watch
