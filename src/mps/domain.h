// SPDX-License-Identifier: Apache-2.0
/// One MPS domain: a control daemon with directories of its own, the servers it starts, and their clients.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "os/kernel.h"

namespace firebreak::mps {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct DomainOptions {
  std::string name;
  /// Where the domain's own "pipe" and "log" directories are made; the caller's to remove. Short: sockets
  /// live there.
  std::string directory;
  /// Looked up in PATH; the software GPU brings a stand-in of the same name.
  std::string control_program = "nvidia-cuda-mps-control";
  /// For the daemon and its servers, besides the two directories.
  Environment environment;
  Milliseconds start_timeout{10'000};
  Milliseconds command_timeout{3'000};
  Milliseconds quit_timeout{5'000};
};

/// Every call runs a control command and blocks for as long as that takes, at most its timeout: not for the
/// thread of an event loop that has to be quick. Questions and terminate_client() may come from several
/// threads, the rest from one at a time.
class Domain {
 public:
  /// Starts the daemon and waits until it answers. The daemon dies with the thread that calls this (so that
  /// nothing is left behind whatever happens): call it from one that stays.
  static Result<std::unique_ptr<Domain>> start(os::Kernel& kernel, DomainOptions options);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  const std::string& name() const { return options_.name; }
  /// What a client needs in its environment to join this domain.
  Environment client_environment() const;
  /// The running servers; none before the first client.
  Result<std::vector<pid_t>> server_pids();
  /// The clients of one server. NotFound when there is no such server.
  Result<std::vector<pid_t>> clients(pid_t server);
  /// Ends one client without harm to the others. Timeout when MPS does not answer: it hangs when the client
  /// is stopped, parked, or has just caused a memory fault (measured). NotFound when the client is already
  /// dead.
  Status terminate_client(pid_t server, pid_t client, Milliseconds timeout) const;
  /// Ends the daemon and its servers: asks, and kills what is still there after `timeout`. Safe to call
  /// again.
  Status quit(Milliseconds timeout);

  /// Whether the daemon is still there.
  bool running();
  pid_t daemon_pid() const { return daemon_pid_; }

 private:
  Domain(os::Kernel& kernel, DomainOptions options);
  Status make_directories();
  Status launch();
  Status wait_until_it_answers();
  Result<std::vector<pid_t>> list_servers(Milliseconds timeout);
  Result<std::string> control(const std::string& command, Milliseconds timeout) const;
  std::string last_words();
  void remember_servers(const std::vector<pid_t>& pids);
  Status end_daemon(Monotonic deadline);
  void end_servers(Monotonic deadline);

  os::Kernel& kernel_;
  DomainOptions options_;
  std::string pipe_directory_;
  std::string log_directory_;
  std::string output_path_;
  pid_t daemon_pid_ = 0;  ///< 0: not started, or ended and reaped
  os::Fd daemon_;
  std::mutex mutex_;  ///< guards servers_
  std::map<pid_t, os::Fd>
      servers_;  ///< every server ever listed, by descriptors that cannot mean another process
};

}  // namespace firebreak::mps
