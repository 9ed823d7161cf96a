// SPDX-License-Identifier: Apache-2.0
/// The start of an agent after one that was killed: what that one kept of every tenant is taken up.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/endings/deaths.h"
#include "agent/tenants/tenant_clients.h"
#include "agent/tenants/weights_keeper.h"

namespace firebreak::agent {

/// Restarts, once, before anybody is connected. The shared page's word on a promotion goes before what was
/// written down of it: the page is first.
class Restart {
 public:
  struct Knows {
    const AgentOptions& options;
    os::Kernel& kernel;
    Domains& domains;
    ServiceManager& manager;
    ShelfQueue& shelves;
    Tenants& tenants;
    Processes& processes;
    Credentials& credentials;
    Placements& placements;
    DescriptorBudget& budget;
    WarmStandbys& warm_standbys;
    Tally& tally;
    Gpus& gpus;
    Records& records;
    Teller& teller;
    Follower& follower;
    Pairs& pairs;
    TenantMemory& memory;
    TenantClients& clients;
    Endings& endings;
    Deaths& deaths;
    WeightsKeeper& weights;
  };
  /// The clients of that domain have lost their contexts while there was no agent.
  using ClientsLost = std::function<void(const std::string& domain)>;

  Restart(Knows knows, ClientsLost clients_lost) : at_(knows), clients_lost_(std::move(clients_lost)) {}

  /// Runs; from then on it is written down what we know, if anybody keeps it.
  void run();

 private:
  std::vector<pid_t> restore(const KeptTenant& kept);
  std::vector<pid_t> restore_members(Tenant& tenant, const KeptTenant& kept);
  void tell_restored(const Tenant& tenant);

  Knows at_;
  ClientsLost clients_lost_;
  std::map<std::string, os::Fd> descriptors_;  ///< descriptors that were kept, and are not taken up yet
};

}  // namespace firebreak::agent
