// SPDX-License-Identifier: Apache-2.0
/// Followed processes that have ended: a client's last kernels run to their end before its address space
/// goes, a fault otherwise, which would take its domain along.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/endings/endings.h"
#include "agent/endings/hold/holder.h"
#include "agent/pairs/pairs.h"
#include "agent/settings/options.h"
#include "agent/tenants/tenant_memory.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Deaths {
 public:
  struct Knows {
    const AgentOptions& options;
    os::Kernel& kernel;
    Domains& domains;
    Detectors& detectors;
    hold::Holder& holder;
    Tenants& tenants;
    Processes& processes;
    Records& records;
    Teller& teller;
    Pairs& pairs;
    TenantMemory& memory;
    Endings& endings;
  };
  /// An active that begins anew may join now.
  using Join = std::function<void(const Asker& asker, const abi::Join& request)>;

  Deaths(Knows knows, Join join) : at_(knows), join_(std::move(join)) {}

  void on_exit(pid_t pid);
  /// `gone`: those of another agent's tenant that ended while nobody looked; others may be another program by
  /// now. Of who else keeps their address spaces, forks are known, and what the agent before has written
  /// down.
  void settle(const KeptTenant& kept, const std::vector<pid_t>& gone);
  /// Nobody is there any more who would be harmed by its dead.
  void let_go_of(const std::string& domain);

  bool has_dying(const std::string& tenant) const;
  /// An active that begins anew joins when nothing of its dead predecessor can land any more.
  void await(const Asker& asker, const abi::Join& request, pid_t pid);
  void on_closed(const Connection& connection);

  /// The holder's (hold::HolderCallbacks).
  hold::ReadWork watch_work(pid_t pid) const;
  void on_endless(pid_t pid);
  void on_released(const hold::Release& release);
  void on_others(pid_t pid, const hold::Findings& others);
  void on_traces(pid_t pid);

 private:
  struct WaitingJoin {
    Asker asker;
    abi::Join request;
    pid_t pid = 0;
  };

  void leave(Tenant& tenant, pid_t pid);
  void settle_other_program(const KeptTenant& kept, const Member& member);
  void await_last_kernel(Process& process);
  bool is_waited_for(const Tenant& tenant, pid_t pid) const;
  bool is_harmless(const Process& process) const;
  bool has_lost_its_clients(const std::string& domain) const;
  std::vector<Tenant*> others_in(const std::string& domain) const;
  bool somebody_waits_for(const Process& process) const;
  bool is_to_be_fenced(const Process& process) const;
  void end_forks(Process& process, const std::vector<hold::OtherHolder>& holders);
  void let_join(const std::string& tenant);
  void forget_if_nobody_came(const std::string& tenant);
  void verify_release(abi::Event released);
  void tell_exited(const Process& process);
  void tell_of_running_work(const Process& process);
  void tell_released(const hold::Release& release, const Process& process);
  void tell_of_others(Process& process, const std::string& others);

  Knows at_;
  Join join_;
  std::vector<WaitingJoin> waiting_joins_;
};

}  // namespace firebreak::agent
