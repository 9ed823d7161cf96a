// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/faults/watch/target.h"
#include "ground/base/clock.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// Says in words whether a process that had a UVM descriptor is about to leave the GPU: Linux has begun to
/// end it (its pidfd tells only when the driver has taken its channels down, 50 ms after the Xid that its
/// death causes; results/h100/characterization.json), or it has closed the descriptor. Empty: it uses the
/// GPU, or nothing is known. Costs about 30 us a process.
std::optional<std::string> departure_of(os::Kernel& kernel, pid_t pid);

/// True for what a dying process leaves behind: a memory fault, in the driver's own words.
bool may_be_of_departure(const fault::Fault& fault);

/// Makes a signal of a process that is about to leave the GPU, in departure_of()'s words; it proves nothing
/// alone.
fault::Fault departure_as_fault(const Target& target, const std::string& words, Monotonic when);

}  // namespace firebreak::watch
