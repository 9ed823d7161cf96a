// SPDX-License-Identifier: Apache-2.0
/// The MPS server: hands the fault domain to clients, notices their deaths, ends one on request. One process
/// a daemon, one thread.
#pragma once

#include <sys/types.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "softgpu/machine/domain.h"
#include "softgpu/machine/mps_protocol.h"
#include "softgpu/machine/rm_client.h"
#include "softgpu/machine/shared_gpu.h"
#include "softgpu/mps/mps_log.h"
#include "softgpu/mps/stored_again.h"

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
    RmClient rm;
    os::Fd uvm;  ///< opened anew: whether anybody still has the client's own is asked of it
    os::Fd pidfd;
    os::Watch exit_watch;
    os::Watch hang_up_watch;
    bool terminated = false;
    std::vector<os::Mapping> host_memory = {};  ///< files that its streams may write words into
  };
  /// A client that died with a kernel under way while somebody keeps its address space.
  struct Orphan {
    pid_t pid = 0;
    Client client;
    os::Watch end_of_work;
    std::vector<StoredAgain> stores;
  };

  Server(std::unique_ptr<os::EventLoop> loop, std::shared_ptr<SharedGpu> gpu, os::Socket daemon);
  void serve_daemon();
  void attach(std::vector<os::Fd> descriptors);
  Result<AttachAnswer> admit(pid_t pid);
  void hear(pid_t pid);
  static bool take_messages(Client& client);
  void let_earlier_go(pid_t pid);
  void client_left(pid_t pid);
  bool works_on(const Client& client) const;
  static bool has_channels(const Client& client);
  static bool holds_its_domain(const Client& client);
  void look_for_end_of_hold();
  static bool may_begin(const Client& client);
  void let_work_end(pid_t pid, Client client);
  static void end_work(Client& client);
  void look_at_orphans();
  void die(pid_t pid, Client& client);
  void start_looking();
  void look_for_fault();
  std::string answer(const std::string& command);
  bool is_in_fault() const;
  bool is_handling_fault() const;
  std::string client_list() const;
  std::string terminate_client(pid_t pid);
  void begin_quit(double wait_seconds);
  void begin_shutdown(bool at_once);
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
  std::shared_ptr<Domain> handled_;  ///< The log tells of the fault of this one.
  os::Watch handling_;
  os::Watch looking_;  ///< as long as there are clients, or orphans
  std::map<pid_t, Client> clients_;
  std::list<Orphan> orphans_;
  /// Its only client has died in mid-kernel: as measured, it calls itself ACTIVE, the next client makes no
  /// context, and another server serves the one after that.
  bool spoiled_ = false;
  bool quitting_ = false;
};

}  // namespace firebreak::softgpu::mps
