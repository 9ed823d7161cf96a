// SPDX-License-Identifier: Apache-2.0
/// The MPS control daemon: listens in the pipe directory, starts the server for the first client, answers
/// commands. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "softgpu/machine/mps_protocol.h"
#include "softgpu/mps/mps_log.h"

namespace firebreak::softgpu::mps {

/// The descriptor on which a server finds its daemon.
inline constexpr int server_descriptor = 3;

class Daemon {
 public:
  /// Unavailable when another daemon listens in the directory.
  static Result<std::unique_ptr<Daemon>> create(MpsLog log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  /// Serves until "quit", SIGTERM or SIGINT; the server has ended when this returns.
  void run();

 private:
  struct ServerProcess {
    pid_t pid = 0;
    os::Fd pidfd;
    os::Socket channel;
    os::Watch watch;
  };
  struct Visitor {
    os::Socket socket;
    os::Watch watch;
  };

  Daemon(std::unique_ptr<os::EventLoop> loop, os::Listener listener, MpsLog log);
  Status watch_everything();
  void accept();
  void serve(int visitor);
  void attach(os::Socket client, const std::vector<os::Fd>& descriptors);
  Status ensure_server();
  void server_ended();
  void answer(os::Socket visitor, const std::string& command);
  std::string answer_text(const std::string& verb, std::istream& arguments);
  /// Sends a command on to the server that `arguments` names first.
  std::string ask_server(const std::string& verb, std::istream& arguments);
  std::string list_processes();
  void quit(std::optional<os::Socket> visitor, double wait_seconds);
  void kill_server();

  std::unique_ptr<os::EventLoop> loop_;
  os::Listener listener_;
  os::RealKernel kernel_;
  MpsLog log_;
  std::string pid_file_;
  os::Watch listener_watch_;
  os::Watch signal_watch_;
  os::Watch quit_timer_;
  std::map<int, Visitor> visitors_;
  std::optional<ServerProcess> server_;
  std::set<pid_t> clients_;  ///< of this server
  /// These are of servers that were shut down, as far as they live. An H100's daemon ends when one of these
  /// comes again.
  std::set<pid_t> former_clients_;
  bool is_shut_down_ = false;  ///< the server was asked to end
  bool quitting_ = false;
  std::vector<os::Socket> quit_visitors_;  ///< they are answered when everything has ended
};

}  // namespace firebreak::softgpu::mps
