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
  put_away(listener_name(tenant->name()), tenant->clients.listener());
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
    put_away(connection_name(tenant->name(), next->id), next->descriptor);
    save();
  }
  connection.answer(abi::ClientConnection{next->id}, next->descriptor);
}

Status Agent::release(const Connection& connection, const abi::Release& request) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("release");
  if (!tenant->clients.open().contains(request.id)) return {};  // the agent before died before it answered
  tenant->clients.release(request.id);
  shelves_.drop(connection_name(tenant->name(), request.id));
  return {};
}

void Agent::restore_clients(Tenant& tenant, const KeptTenant& kept) {
  std::vector<std::string> names = {listener_name(kept.name)};
  for (const std::uint64_t id : kept.connections) names.push_back(connection_name(kept.name, id));
  std::vector<os::Fd> descriptors = shelves_.get(names);
  std::map<std::uint64_t, os::Fd> open;
  for (std::size_t i = 0; i < kept.connections.size(); ++i) {
    if (descriptors[i + 1]) open.emplace(kept.connections[i], std::move(descriptors[i + 1]));
  }
  tenant.clients.restore(kept.last_connection, std::move(descriptors.front()), std::move(open));
}

}  // namespace firebreak::agent
