// SPDX-License-Identifier: Apache-2.0
/// A tenant's clients: whoever is the active one gets their connections, one question each.
#include <vector>

#include "agent/agent.h"

namespace firebreak::agent {

Status Agent::take_listener(const Connection& connection, std::vector<os::Fd> descriptors) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("listen");
  if (descriptors.size() != 1) return fail(ErrorCode::InvalidArgument, "to listen takes one socket");
  auto listens = tenant->clients.listen(std::move(descriptors.front()));
  if (!listens) return listens;
  manager_.drop(listener_name(tenant->name()));
  keep(listener_name(tenant->name()), tenant->clients.listener());
  return {};
}

void Agent::give_listener(Connection& connection) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return answer(connection, not_in_that_role("listen"));
  if (tenant->clients.listener() < 0)
    return answer(connection, fail(ErrorCode::NotFound, "the tenant listens nowhere"));
  connection.answer(abi::Done{}, tenant->clients.listener());
}

void Agent::next_connection(Connection& connection, const abi::NextConnection& request) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return answer(connection, not_in_that_role("accept"));
  const auto next = tenant->clients.next(request.after);
  if (!next) {
    const bool nobody_waits = next.error().code == ErrorCode::Timeout;
    return answer(connection, nobody_waits ? Status{} : propagate(next));
  }
  if (next->is_new) {
    keep(connection_name(tenant->name(), next->id), next->descriptor);
    save();
  }
  connection.answer(abi::ClientConnection{next->id}, next->descriptor);
}

Status Agent::release(const Connection& connection, const abi::Release& request) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("release");
  if (!tenant->clients.open().contains(request.id)) return {};  // the agent before died before it answered
  tenant->clients.release(request.id);
  manager_.drop(connection_name(tenant->name(), request.id));
  return {};
}

void Agent::restore_clients(Tenant& tenant, const KeptTenant& kept,
                            std::map<std::string, os::Fd>& descriptors) {
  std::map<std::uint64_t, os::Fd> open;
  for (const std::uint64_t id : kept.connections) {
    if (os::Fd its = take_descriptor(descriptors, connection_name(kept.name, id)))
      open.emplace(id, std::move(its));
  }
  tenant.clients.restore(kept.last_connection, take_descriptor(descriptors, listener_name(kept.name)),
                         std::move(open));
}

void Agent::forget_clients(const Tenant& tenant) {
  manager_.drop(listener_name(tenant.name()));
  for (const auto& [id, descriptor] : tenant.clients.open())
    manager_.drop(connection_name(tenant.name(), id));
}

}  // namespace firebreak::agent
