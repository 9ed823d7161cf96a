// SPDX-License-Identifier: Apache-2.0
/// One MPS domain: a control daemon with directories of its own, the servers it starts, and their clients.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/domains/mps/client_limits.h"
#include "agent/domains/mps/daemon_host.h"
#include "ground/base/clock.h"
#include "ground/os/kernel.h"
#include "ground/os/logs.h"

namespace firebreak::mps {

struct Leftover;

/// An MPS daemon that is to be started, in its process's own environment and this.
struct DaemonStart {
  std::vector<std::string> command;
  Environment environment;
  std::string output_path;  ///< file to which the output of the daemon and its servers is appended
};

struct DomainOptions {
  std::string name;
  /// Directory in which the domain's own "pipe" and "log" directories are made; the caller's to remove.
  /// Short: sockets live there.
  std::string directory;
  /// Looked up in PATH; the software GPU brings a stand-in of the same name.
  std::string control_program = "nvidia-cuda-mps-control";
  /// Variables for the daemon and its servers, besides the two directories.
  Environment environment;
  /// The UUID of the one GPU that the domain has; empty: what CUDA finds.
  std::string gpu;
  /// The daemon goes on when this process is killed.
  bool outlives_us = false;
  /// Starts a daemon somewhere else than as our child, with nothing of what binds this process. Unsupported:
  /// it is to be our child. Empty: nobody does.
  std::function<Result<pid_t>(const DaemonStart&)> start_apart = nullptr;
  /// Called with each daemon that is started as our child, before it starts a server or answers; so that it
  /// can be moved to a place of its own, and its servers with it.
  std::function<void(pid_t daemon)> on_daemon = nullptr;
  /// The directories may hold what a killed process left: a daemon that still answers is used, and what does
  /// not is removed. Only for who alone may use them.
  bool takes_over = false;
  /// Limits of what an earlier daemon wrote.
  os::LogLimits log;
  /// Group whose members may be clients, besides root and our user, at the same time; none: nobody.
  std::optional<gid_t> group = {};
  /// Group whose members read the logs and see what is in the pipe directory, where that is not us.
  std::optional<gid_t> reader = {};
  /// Host of the daemon and the directories; empty: they are ours.
  std::shared_ptr<DaemonHost> host = nullptr;
  Milliseconds start_timeout{10'000};
  Milliseconds command_timeout{3'000};
  Milliseconds quit_timeout{5'000};
  /// One that was asked to end and has no clients is killed after so long.
  Milliseconds server_end_timeout{2'000};
};

/// Returns the variables that a client needs to join that domain.
Environment client_environment_of(const DomainOptions& options);

/// The state of a server in MPS's words.
enum class ServerState {
  Active,  ///< the server is in order
  Fault,   ///< the server's clients have lost what they had on the GPU; it waits until those whom the fault
           ///< has hit are gone, too
  Other,   ///< another state: the server is coming up, say
};

/// A domain of MPS. Every call runs a control command and blocks for as long as that takes, at most its
/// timeout: not for the thread of an event loop that has to be quick. Questions and terminate_client() may
/// come from several threads, the rest from one at a time.
class Domain {
 public:
  /// Starts the daemon and waits until it answers. Unless it is to outlive us, the daemon dies with the
  /// thread that calls this (so that nothing is left behind whatever happens): call it from one that stays.
  static Result<std::unique_ptr<Domain>> start(os::Kernel& kernel, DomainOptions options);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  const std::string& name() const { return options_.name; }
  const std::string& pipe_directory() const { return pipe_directory_; }
  /// Returns the variables that a client needs to join this domain.
  Environment client_environment() const;
  /// The running servers; none before the first client.
  Result<std::vector<pid_t>> server_pids();
  /// The clients of one server. NotFound when there is no such server.
  Result<std::vector<pid_t>> clients(pid_t server);
  /// Whether one of them is a process still: MPS named one for good that had died after an exception of its
  /// kernel, on an H100 (docs/how/parking.md).
  bool has_living(std::span<const pid_t> clients) const;
  /// Ends one client without harm to the others. Timeout when MPS does not answer: it hangs when the client
  /// is stopped, parked, or has just caused a memory fault (measured). NotFound when the client is already
  /// dead.
  Status terminate_client(pid_t server, pid_t client, Milliseconds timeout) const;
  Result<ServerState> server_state(pid_t server) const;
  /// Starts a server for that user, before a client asks for one.
  Status start_server(uid_t user);
  /// Ends a server that has no living clients and returns when MPS names it no more. It is asked to take
  /// nobody and to end with its last client (as NVIDIA's manual has it), and killed where it runs on without
  /// one. Unavailable: it has a client, who has come meanwhile; it then ends when that is gone.
  Status end_server(pid_t server);
  /// Ends the daemon and its servers: asks, and kills what is still there after `timeout`. Safe to call
  /// again.
  Status quit(Milliseconds timeout);
  /// Lets go of the daemon, which goes on for another process.
  void leave();

  /// True when the daemon is still there.
  bool running();
  pid_t daemon_pid() const { return daemon_pid_; }
  /// Readable when the daemon has ended; valid until quit().
  const os::Fd& daemon() const { return daemon_; }
  /// True when another process had started the daemon.
  bool is_taken_over() const { return is_taken_over_; }
  /// Tells what became of what a killed process had left, in words; empty: there was nothing.
  const std::string& takeover() const { return takeover_; }
  /// The last line that daemon and servers printed.
  std::string last_words() const;
  /// Moves away what is too much of the logs of daemon and servers.
  Status bound_logs() { return options_.host->bound_logs(); }

 private:
  Domain(os::Kernel& kernel, DomainOptions options);
  Status find_control_program();
  Status take_over();
  bool has_our_gpu(const std::string& environment) const;
  bool adopt(const Leftover& daemon);
  std::size_t count_clients();
  Status clean(const std::string& why);
  Status launch();
  Status wait_until_it_answers();
  Result<std::vector<pid_t>> list_servers(Milliseconds timeout);
  bool names(pid_t server);
  Status kill_server(pid_t server, const os::Fd& process);
  Result<std::string> control(const std::string& command, Milliseconds timeout) const;
  void remember_servers(const std::vector<pid_t>& pids);
  Status end_daemon(Monotonic deadline);
  void end_servers(Monotonic deadline);

  os::Kernel& kernel_;
  DomainOptions options_;
  std::string pipe_directory_;
  std::string output_path_;
  std::string takeover_;
  pid_t daemon_pid_ = 0;  ///< 0: not started, or ended and reaped
  bool is_taken_over_ = false;
  bool is_child_ = true;  ///< a process that is none cannot be reaped
  os::Fd daemon_;
  std::mutex mutex_;  ///< guards servers_
  std::map<pid_t, os::Fd>
      servers_;  ///< the listed servers that still live, by descriptors that cannot mean another process
};

}  // namespace firebreak::mps
