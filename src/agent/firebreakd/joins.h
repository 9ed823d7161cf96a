// SPDX-License-Identifier: Apache-2.0
/// Joins: who belongs to which tenant, and in which role; processes that are adopted, that join, come back,
/// and change places.
#pragma once

#include <string>

#include "agent/endings/deaths.h"
#include "agent/pairs/follower.h"
#include "agent/pairs/pairs.h"
#include "agent/settings/options.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/descriptor_budget.h"
#include "agent/tenants/placements.h"
#include "agent/tenants/tenant_memory.h"
#include "agent/tenants/warm_standbys.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. Joining answers, possibly later; all else is for the caller to answer.
class Joins {
 public:
  struct Knows {
    const AgentOptions& options;
    os::Kernel& kernel;
    const Clock& clock;
    Domains& domains;
    Server& server;
    Tenants& tenants;
    Processes& processes;
    Credentials& credentials;
    Placements& placements;
    DescriptorBudget& budget;
    WarmStandbys& warm_standbys;
    Records& records;
    Answers& answers;
    Teller& teller;
    Follower& follower;
    Pairs& pairs;
    TenantMemory& memory;
    Deaths& deaths;
  };
  explicit Joins(Knows knows) : at_(knows) {}

  /// A process that `firebreak run` has started, with what the operator says of its strays; a tenant's word
  /// about itself does not count.
  Status adopt(Connection& connection, const abi::Adopt& request);
  void join(Connection& connection, const abi::Join& request);
  /// A standby has warmed up.
  void ready(Connection& connection);
  /// A process that had joined, and lost the agent before this one, or its connection to this one. What the
  /// pair was told when that broke it is told anew. A connection that is still there is the process's older
  /// one.
  Status rejoin(Connection& connection, const abi::Rejoin& request);
  /// Asked of the active itself: it knows when it is between two steps.
  Status hand_over(const abi::HandOver& request);
  /// A fenced process that only seemed to have faulted has all that a standby needs; so has one that hands
  /// over: but only while its word is not taken back, since it waits no longer for us than for some seconds.
  Status stand_down(Connection& connection, const abi::StandDown& request);

 private:
  Result<Tenant*> tenant_named(const std::string& name, uid_t user);
  Status may_adopt(const Connection& connection, const abi::Adopt& request) const;
  Status is_for(const Connection& connection, pid_t pid) const;
  Status take_on(const Connection& connection, const abi::Adopt& request,
                 const std::string& pipe_directory = {});
  Status may_join(const Tenant& tenant, const abi::Join& request) const;
  Status may_be(const Connection& connection, const std::string& tenant, const std::string& token) const;
  bool has_joined(const Connection& connection, Tenant& tenant, const abi::Join& request) const;
  void welcome(Connection& connection, Tenant& tenant, abi::Role role);
  void stands_by_again(Tenant& tenant, bool ready);
  void tell_joined(const Tenant& tenant, const Member& member, const std::string& how);

  Knows at_;
};

}  // namespace firebreak::agent
