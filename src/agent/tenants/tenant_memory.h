// SPDX-License-Identifier: Apache-2.0
/// Tenants' memory, which outlives their processes: taken in, put away on a shelf, given out again, and gone
/// with the tenant when its lease is over.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/service/shelf_queue.h"
#include "agent/settings/options.h"
#include "agent/tenants/allocation_giver.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/descriptor_budget.h"
#include "agent/tenants/records.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/weights_keeper.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class TenantMemory {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    ServiceManager& manager;
    ShelfQueue& shelves;
    Server& server;
    Tenants& tenants;
    Credentials& credentials;
    DescriptorBudget& budget;
    Records& records;
    Answers& answers;
    AllocationGiver& giver;
    WeightsKeeper& weights;
    Teller& teller;
  };
  explicit TenantMemory(Knows knows) : at_(knows) {}

  void publish(Connection& connection, const abi::Publish& request, const Descriptors& descriptors);
  void give_allocation(Connection& connection, const abi::GiveAllocation& request);
  /// Sends them unasked to a program of before 0.7: one that numbers its requests asks for what it needs.
  /// While all of it is still on its way to that process it comes once more, however often this is called.
  void send_allocations(Connection& connection, const Tenant& tenant);
  /// Restores it as another agent kept it.
  void restore(Tenant& tenant, const KeptTenant& kept);
  /// Takes up what the agent before had still to clear away (KeptCommon), once all tenants are there.
  void take_up(const std::vector<std::string>& leaving);

  /// Forgets a tenant that leaves nothing: it has finished, or never had anything. A lost one may be started
  /// anew within the lease, and goes on where it stopped.
  void forget_if_empty(std::string name);
  /// Forgets all tenants, whatever they have: nothing of them is kept any more.
  void forget_all(const char* why);

 private:
  Status take_in(Tenant& tenant, const abi::Publish& request, std::vector<os::Fd> descriptors);
  void put_away(const Asker& asker, const Tenant& tenant, const vault::Entry& entry);
  void forget_lost(const std::string& tenant, const std::vector<std::string>& allocations,
                   const std::vector<bool>& there);
  void forget(const Tenant& tenant, const char* why);
  void clear_shelf_of(const std::string& tenant);
  void sent_to(pid_t pid);

  /// The allocations on their way to one process.
  struct Sending {
    std::size_t left = 0;     ///< answers of shelves that are still to come
    std::uint64_t again = 0;  ///< the connection that wants all of it once more; 0: none
    std::string tenant = {};
  };

  Knows at_;
  std::map<pid_t, Sending> sending_;
};

}  // namespace firebreak::agent
