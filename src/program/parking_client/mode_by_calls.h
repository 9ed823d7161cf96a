// SPDX-License-Identifier: Apache-2.0
/// Puts this process into CUDA's core dump mode by the driver's calls, where its environment does not: a
/// program that joined without `firebreak run`, or has the preload by its environment alone.
#pragma once

#include <functional>

#include "program/cuda/driver.h"
#include "shared/link/question.h"

namespace firebreak::park {

/// Asks the agent.
using AskAgent = std::function<Result<link::Answer>(const abi::Message& question)>;

enum class ModeByCalls {
  Entered,
  NotWanted,    ///< the agent parks nothing, or knows another way
  OwnSettings,  ///< the program has its own, by its environment or by calls: they stay
};

/// For a process that has a context: before cuInit the driver's calls end it with a signal, and what is set
/// for a context alone does nothing (H200, driver 580: results/h200/core-dump-api.json). The dump goes to a
/// pipe of the agent's. Where that cannot be reached by its path, as in a container, it is by a descriptor,
/// which stays open. Waits for an agent that does not know the process as a client yet, half a second at
/// most. Errors: the agent's, or Unsupported: the driver has no such calls; the agent is told where it can
/// be.
Result<ModeByCalls> enter_mode(const cuda::Driver& driver, const AskAgent& ask);

/// The same for as long as it takes, on a thread of its own where the agent is late: on a busy machine it has
/// not heard of the process yet, or does not come to answer. `ask` and `driver` stay until the process ends.
/// `undisturbed`: runs what it is given on that thread.
void enter_mode_whenever(const cuda::Driver& driver, const AskAgent& ask,
                         void (*undisturbed)(const std::function<void()>& run));

}  // namespace firebreak::park
