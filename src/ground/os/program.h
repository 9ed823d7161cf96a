// SPDX-License-Identifier: Apache-2.0
/// Running a program to its end, bounded in time.
#pragma once

#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/os/kernel.h"

namespace firebreak::os {

struct ProgramResult {
  ExitStatus status;
  std::string output;  ///< standard output and standard error together
};

/// Starts the program with `input` as its standard input and waits for its end. After `timeout` it is killed
/// and reaped, and the answer is Timeout. The descriptors of `request` are set here; blocks the calling
/// thread.
Result<ProgramResult> run_program(Kernel& kernel, SpawnRequest request, std::string_view input,
                                  Milliseconds timeout);

/// Waits until a child has ended and reaps it; empty when it still runs after `timeout`.
Result<std::optional<ExitStatus>> wait_for_child(Kernel& kernel, pid_t pid, const Fd& pidfd,
                                                 Milliseconds timeout);

/// Kills a child and reaps it. A child that does not even die of SIGKILL within a second (it hangs inside a
/// driver) is left to its fate: Timeout.
Status kill_child(Kernel& kernel, pid_t pid, const Fd& pidfd);

}  // namespace firebreak::os
