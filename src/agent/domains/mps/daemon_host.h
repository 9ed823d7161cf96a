// SPDX-License-Identifier: Apache-2.0
/// The user of an MPS domain's daemon and its directories, and what only that user may do with them: this
/// process itself, or another that it asks (agent/root/privileged_helper.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"
#include "ground/os/program.h"

namespace firebreak::mps {

struct DomainOptions;

/// Returns the pipe directory in a domain's directory.
std::string pipe_directory_in(const std::string& directory);
std::string log_directory_in(const std::string& directory);
/// Returns the file of output in a domain's directory: in the foreground daemon and server print there what
/// otherwise goes to control.log and server.log (seen with 580); whoever looks for the server's log finds it
/// under its usual name.
std::string output_path_in(const std::string& directory);

/// One domain's. Each call may wait, as long as it says or for some seconds. Thread safe but for
/// start_daemon().
class DaemonHost {
 public:
  struct Daemon {
    pid_t pid = 0;
    os::Fd process;         ///< a pidfd
    bool is_child = false;  ///< it is a child of ours, so that it has to be reaped
  };

  virtual ~DaemonHost() = default;
  /// Makes the directories for pipes and logs.
  virtual Status make_directories() = 0;
  /// Takes away what a daemon that is gone has left for its clients.
  virtual Status clear_pipe_directory() = 0;
  /// Logs of the one before are moved away first.
  virtual Result<Daemon> start_daemon() = 0;
  /// A control command, and what was said to it.
  virtual Result<os::ProgramResult> control(const std::string& command, Milliseconds timeout) = 0;
  /// Moves away what is too much of the logs; they are written on.
  virtual Status bound_logs() = 0;
};

/// Makes the host that is this process itself. The kernel outlives it.
std::unique_ptr<DaemonHost> own_daemon_host(os::Kernel& kernel, const DomainOptions& options);

}  // namespace firebreak::mps
