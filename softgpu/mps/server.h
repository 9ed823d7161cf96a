// SPDX-License-Identifier: Apache-2.0
/// The MPS server: hands the fault domain to clients, notices their deaths, ends one on request. One process
/// a daemon, one thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/real_kernel.h"
#include "os/socket.h"
#include "softgpu/machine/domain.h"
#include "softgpu/machine/mps_protocol.h"
#include "softgpu/machine/shared_gpu.h"
#include "softgpu/mps/mps_log.h"

namespace firebreak::softgpu::mps {

class Server {
 public:
  /// `daemon` is the daemon's end of everything: requests come from it, and the server ends when it is gone.
  static Result<std::unique_ptr<Server>> create(os::Socket daemon);
  void run();

 private:
  struct Client {
    std::shared_ptr<Domain> domain;
    std::uint32_t slot = 0;
    os::Socket connection;
    os::Fd pidfd;
    os::Watch exit_watch;
    os::Watch hang_up_watch;
    bool terminated = false;
  };

  Server(std::unique_ptr<os::EventLoop> loop, std::shared_ptr<SharedGpu> gpu, os::Socket daemon);
  void serve_daemon();
  void attach(os::Socket connection);
  Result<AttachAnswer> admit(pid_t pid);
  void client_left(pid_t pid);
  void start_looking();
  void look_for_fault();
  std::string answer(const std::string& command);
  bool is_in_fault() const;
  std::string client_list() const;
  std::string terminate_client(pid_t pid);
  void begin_quit(double wait_seconds);
  void end_when_idle();
  void end();

  std::unique_ptr<os::EventLoop> loop_;
  std::shared_ptr<SharedGpu> gpu_;
  os::Socket daemon_;
  os::Watch daemon_watch_;
  os::Watch quit_timer_;
  os::RealKernel kernel_;
  MpsLog log_;
  double speed_;
  std::shared_ptr<Domain> domain_;
  std::shared_ptr<Domain> handled_;  ///< whose fault the log tells of
  os::Watch handling_;
  os::Watch looking_;  ///< as long as there are clients
  std::map<pid_t, Client> clients_;
  bool quitting_ = false;
};

}  // namespace firebreak::softgpu::mps
