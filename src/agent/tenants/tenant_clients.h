// SPDX-License-Identifier: Apache-2.0
/// A tenant's clients: whoever is the active one gets their connections, one question each.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "agent/service/shelf_queue.h"
#include "agent/settings/options.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/descriptor_budget.h"
#include "agent/tenants/records.h"
#include "agent/tenants/tenants.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class TenantClients {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    ShelfQueue& shelves;
    Server& server;
    Tenants& tenants;
    Credentials& credentials;
    DescriptorBudget& budget;
    Records& records;
    Answers& answers;
  };
  explicit TenantClients(Knows knows) : at_(knows) {}

  void take_listener(Connection& connection, const Descriptors& descriptors);
  void give_listener(Connection& connection);
  void next_connection(Connection& connection, const abi::NextConnection& request);
  void release(Connection& connection, const abi::ReleaseConnection& request);
  /// Nobody waits for a tenant's next client.
  bool is_idle() const;
  /// Restores them as another agent kept them.
  void restore(Tenant& tenant, const KeptTenant& kept);

 private:
  /// Checks for room: each client costs the agent a descriptor.
  Status room_for_client(const Tenant& tenant) const;
  void answer_with_client(Connection& connection, const Result<ClientConnections::Entry>& next);
  void put_away(const std::string& name, int descriptor, std::function<void()> done);
  bool is_put_off(const Connection& connection, Tenant& tenant, std::function<void(Connection&)> what);

  Knows at_;
  std::set<std::string> told_full_;  ///< tenants of which the log says that their clients wait
};

}  // namespace firebreak::agent
