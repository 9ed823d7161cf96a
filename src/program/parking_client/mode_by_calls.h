// SPDX-License-Identifier: Apache-2.0
/// Puts this process into CUDA's core dump mode by the driver's calls, where its environment does not: a
/// program that joined without `firebreak run`, or has the preload by its environment alone.
#pragma once

#include <functional>
#include <memory>

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
/// most; where it is later still, as on a busy machine, a thread of its own goes on for as long as it takes.
/// What goes wrong the agent is told where it can be. `ask` works until the process ends. `undisturbed`: runs
/// what it is given on that thread.
void enter_mode_whenever(std::shared_ptr<const cuda::Driver> driver, const AskAgent& ask,
                         void (*undisturbed)(const std::function<void()>& run));

}  // namespace firebreak::park
