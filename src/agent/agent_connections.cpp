// SPDX-License-Identifier: Apache-2.0
/// A tenant's clients: whoever is the active one gets their connections, one question each.
#include <utility>
#include <vector>

#include "agent/agent.h"

namespace firebreak::agent {

void Agent::take_listener(Connection& connection, const Descriptors& descriptors) {
  Tenant* tenant = tenants_.of(connection, &Tenant::active);
  if (tenant == nullptr) return answers_.give_once(connection, not_in_that_role("listen"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { take_listener(then, descriptors); }))
    return;
  if (descriptors->size() != 1)
    return answers_.give_once(connection, fail(ErrorCode::InvalidArgument, "to listen takes one socket"));
  if (auto listens = tenant->clients.listen(std::move(descriptors->front())); !listens)
    return answers_.give_once(connection, listens);
  put_away(listener_name(tenant->name()), tenant->clients.listener(), [this, asker = connection.asker()] {
    server_.handle(asker, [this](Connection& then) { answers_.give_once(then, {}); });
  });
}

void Agent::give_listener(Connection& connection) {
  Tenant* tenant = tenants_.of(connection, &Tenant::active);
  if (tenant == nullptr) return answers_.give(connection, not_in_that_role("listen"));
  if (is_put_off(connection, *tenant, [this](Connection& then) { give_listener(then); })) return;
  if (tenant->clients.listener() < 0)
    return answers_.give(connection, fail(ErrorCode::NotFound, "the tenant listens nowhere"));
  connection.answer(abi::Done{}, tenant->clients.listener());
}

void Agent::next_connection(Connection& connection, const abi::NextConnection& request) {
  Tenant* tenant = tenants_.of(connection, &Tenant::active);
  if (tenant == nullptr) return answers_.give(connection, not_in_that_role("accept"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { next_connection(then, request); }))
    return;
  const auto next = tenant->clients.next(request.after);
  if (!next) {
    const bool nobody_waits = next.error().code == ErrorCode::Timeout;
    return answers_.give(connection, nobody_waits ? Status{} : propagate(next));
  }
  const abi::ClientConnection given{next->id};
  if (!next->is_new) return connection.answer(given, next->descriptor);
  // It is the tenant's once it outlives us.
  put_away(connection_name(tenant->name(), next->id), next->descriptor,
           [this, given, asker = connection.asker(), name = tenant->name()] {
             records_.save();
             Tenant* found = tenants_.find(name);
             if (found == nullptr) return;
             const auto& open = found->clients.open();
             const auto its = open.find(given.id);
             if (its == open.end()) return;
             server_.handle(asker, [&](Connection& then) { then.answer(given, its->second.get()); });
           });
}

void Agent::release(Connection& connection, const abi::ReleaseConnection& request) {
  Tenant* tenant = tenants_.of(connection, &Tenant::active);
  if (tenant == nullptr) return answers_.give_once(connection, not_in_that_role("release"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { release(then, request); })) return;
  // Else the agent before died before it answered.
  if (tenant->clients.open().contains(request.id)) {
    tenant->clients.release(request.id);
    shelves_.drop(connection_name(tenant->name(), request.id));
  }
  answers_.give_once(connection, {});
}

/// Until the shelves have said what there is, its connections have their numbers alone.
void Agent::restore_clients(Tenant& tenant, const KeptTenant& kept) {
  std::vector<std::string> names = {listener_name(kept.name)};
  std::map<std::uint64_t, os::Fd> numbers;
  for (const std::uint64_t id : kept.connections) {
    names.push_back(connection_name(kept.name, id));
    numbers.emplace(id, os::Fd());
  }
  tenant.clients.restore(kept.last_connection, {}, std::move(numbers));
  ++tenant.awaited_answers;
  shelves_.get(std::move(names), [this, name = kept.name, ids = kept.connections,
                                  last = kept.last_connection](std::vector<os::Fd> descriptors) {
    Tenant* found = tenants_.find(name);
    if (found == nullptr) return;
    std::map<std::uint64_t, os::Fd> open;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (descriptors[i + 1]) open.emplace(ids[i], std::move(descriptors[i + 1]));
    }
    found->clients.restore(last, std::move(descriptors.front()), std::move(open));
    take_up_again(name);
  });
}

/// What the shelves have of it is not known yet: then it is done later, for who asks now.
bool Agent::is_put_off(const Connection& connection, Tenant& tenant, std::function<void(Connection&)> what) {
  if (tenant.awaited_answers == 0) return false;
  tenant.put_off.push_back(
      [this, asker = connection.asker(), what = std::move(what)] { server_.handle(asker, what); });
  return true;
}

void Agent::take_up_again(const std::string& tenant) {
  Tenant* found = tenants_.find(tenant);
  if (found == nullptr || --found->awaited_answers > 0) return;
  for (const auto& each : std::exchange(found->put_off, {})) each();
}

}  // namespace firebreak::agent
