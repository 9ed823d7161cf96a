// SPDX-License-Identifier: Apache-2.0
/// Processes and whole tenants that are told to end, and who waits for it; and processes that are no use to
/// their tenant any more.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/pairs/pairs.h"
#include "agent/settings/options.h"
#include "agent/tenants/recent_faults.h"
#include "agent/tenants/tenant_memory.h"
#include "agent/tenants/weights_keeper.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Endings {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    os::Kernel& kernel;
    Domains& domains;
    Detectors& detectors;
    Server& server;
    Tenants& tenants;
    Processes& processes;
    RecentFaults& recent_faults;
    Records& records;
    Answers& answers;
    Teller& teller;
    Follower& follower;
    Pairs& pairs;
    TenantMemory& memory;
    const WeightsKeeper& weights;
  };
  explicit Endings(Knows knows) : at_(knows) {}

  /// Serves the requests of operators. PermissionDenied: a user asks who did not start that program: it has
  /// become another user's since.
  Status end_process(const Connection& connection, const abi::EndProcess& request);
  void end_tenant(Connection& connection, const abi::EndTenant& request);

  /// Ends the process in good order (agent/loop/orderly_end.h).
  void end_orderly(pid_t pid, const std::string& why, Milliseconds grace);
  /// Ends all tenants, at once. `done` is called when nothing of their processes is left, also inside of this
  /// call: with how each ended, in one line for a person; empty: none was there.
  void end_all(const std::string& why, Milliseconds grace, std::function<void(const std::string&)> done);
  /// Ends the tenant with its standby, which is not to take over.
  void end_whole(Tenant& tenant, const std::string& why, Milliseconds grace);

  /// Nothing of it is left; `how`: what we did for it, empty: nothing.
  void tell_ended(pid_t pid, const std::string& how);
  /// Takes note of a closed connection: its process may still serve, or come back, or be of no use any more.
  void on_closed(const Connection& connection);
  /// An agent before has left it to us: those of its processes that have to come back have not yet.
  void await_those_of_before(const Tenant& tenant);
  /// True when the process runs another program than when it joined; false also where nobody can tell.
  bool is_other_program(const Member& member) const;
  /// A process has become another program.
  void on_other_program(pid_t pid);

 private:
  Status may_end(const Connection& connection, pid_t pid) const;
  /// A peer that waits for the end of a tenant, or of all.
  struct Waiter {
    std::uint64_t connection = 0;  ///< connection that is told; 0: it is none
    std::function<void(const std::string&)> done;
    std::set<pid_t> waiting;
    std::vector<std::string> ends = {};
  };

  /// Returns the processes of one tenant, or of all where the name is empty.
  std::set<pid_t> processes_of(const std::string& tenant) const;
  void has_hung_up(Tenant& tenant, const Member& member);
  void end_unless_it_serves(pid_t pid);
  void give_up_if_away(const std::string& name, pid_t pid);
  void await_return(const std::string& name, pid_t pid, Milliseconds patience);
  void look_later(pid_t pid, Milliseconds delay, std::function<void()> look);

  Knows at_;
  std::vector<Waiter> waiters_;
};

}  // namespace firebreak::agent
