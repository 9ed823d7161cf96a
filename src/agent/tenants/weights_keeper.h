// SPDX-License-Identifier: Apache-2.0
/// Weights that several tenants map (shared_weights.h): taken in, shared, given out and released, and put
/// away on a shelf meanwhile.
#pragma once

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
#include "agent/tenants/shared_weights.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenants.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class WeightsKeeper {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    const Clock& clock;
    ShelfQueue& shelves;
    Server& server;
    Tenants& tenants;
    Credentials& credentials;
    DescriptorBudget& budget;
    Records& records;
    Answers& answers;
    AllocationGiver& giver;
    Teller& teller;
    SharedWeights& weights;
  };
  explicit WeightsKeeper(Knows knows) : at_(knows) {}

  // Requests of tenants' processes.
  /// Of the tenant's active; nothing of what the shelves have of that tenant is unknown any more.
  void publish(Connection& connection, const Tenant& tenant, const abi::Publish& request,
               const Descriptors& descriptors);
  /// False: the tenant has made nothing of that name, and nobody is answered.
  bool give_own(Connection& connection, const Tenant& tenant, const std::string& piece);
  void share(Connection& connection, const abi::Share& request);
  void give(Connection& connection, const abi::GiveShared& request);
  void on_closed(const Connection& connection) { waiting_.erase(connection.id()); }

  // Questions about what that tenant has made.
  bool has(const Tenant& tenant, const std::string& piece) const;
  bool has_unshared(const Tenant& tenant) const;
  std::uint64_t bytes_of(const Tenant& tenant) const;
  /// PermissionDenied, with who: others have what it shares.
  Status may_end(const Tenant& tenant) const;

  void has_no_process(const Tenant& tenant);
  /// The tenant is about to be forgotten, and with it what it has not shared.
  void is_no_more(const Tenant& tenant, const char* why);
  void forget_all(const char* why);

  /// Restores it as another agent kept it, once the tenants are there.
  void restore(const std::vector<KeptWeights>& kept);
  /// Takes up what the agent before had still to clear away. False: it is a tenant's (KeptCommon::leaving).
  bool takes_up(const std::string& leaving);

 private:
  WeightsName name_of(const Tenant& tenant) const;
  /// Null: that is another user's, or there is none.
  Tenant* maker_of(const WeightsName& name) const;
  void refuse(Connection& connection, const Error& why);
  Status take_in(const Connection& connection, const Tenant& tenant, const abi::Publish& request,
                 std::vector<os::Fd> descriptors);
  Status room_for(const Connection& connection, const WeightsName& name) const;
  void put_away(const Asker& asker, const WeightsName& name, const vault::Entry& piece);
  void forget_lost(const WeightsName& name, const std::vector<std::string>& pieces,
                   const std::vector<bool>& there);
  void tell_waiting(const WeightsName& name);
  void look();
  void release(const WeightsName& name, const char* why);
  void clear_shelf_of(const std::string& owner);

  Knows at_;
  std::map<std::uint64_t, WeightsName> waiting_;  ///< connections that are told when it is shared
  os::Watch next_end_;
};

}  // namespace firebreak::agent
