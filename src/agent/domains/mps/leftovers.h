// SPDX-License-Identifier: Apache-2.0
/// MPS processes that an agent left in a domain's directories when it was killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/os/kernel.h"

namespace firebreak::mps {

struct Leftover {
  pid_t pid = 0;
  os::Fd pidfd;
  std::string environment;  ///< NAME=VALUE entries, each with a NUL at its end
};

/// The daemon whose pid file lies in the pipe directory, where that process still is one: of the control
/// program's name, and started with that directory.
std::optional<Leftover> find_daemon(os::Kernel& kernel, const std::string& control_program,
                                    const std::string& pipe_directory);

/// Finds every MPS process that was started with that pipe directory: daemons, servers, and commands that
/// hang. Their clients have it in their environments too, under another name, and are none.
std::vector<Leftover> find_processes(os::Kernel& kernel, const std::string& control_program,
                                     const std::string& pipe_directory);

/// True when anybody else was started with that pipe directory, and lives: a client, or who may become one.
bool has_clients(os::Kernel& kernel, const std::string& control_program, const std::string& pipe_directory);

/// Kills them and waits until they are gone, at most `timeout` for all. Timeout: one is still there.
Status end_all(os::Kernel& kernel, const std::vector<Leftover>& leftovers, std::chrono::milliseconds timeout);

}  // namespace firebreak::mps
