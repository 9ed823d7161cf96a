// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tenant_clients.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace firebreak::agent {

void TenantClients::take_listener(Connection& connection, const Descriptors& descriptors) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return at_.answers.give_once(connection, not_in_that_role("listen"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { take_listener(then, descriptors); }))
    return;
  if (descriptors->size() != 1)
    return at_.answers.give_once(connection, fail(ErrorCode::InvalidArgument, "to listen takes one socket"));
  if (auto listens = tenant->clients.listen(std::move(descriptors->front())); !listens)
    return at_.answers.give_once(connection, listens);
  put_away(listener_name(tenant->name()), tenant->clients.listener(), [this, asker = connection.asker()] {
    at_.server.handle(asker, [this](Connection& then) { at_.answers.give_once(then, {}); });
  });
}

void TenantClients::give_listener(Connection& connection) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return at_.answers.give(connection, not_in_that_role("listen"));
  if (is_put_off(connection, *tenant, [this](Connection& then) { give_listener(then); })) return;
  if (tenant->clients.listener() < 0)
    return at_.answers.give(connection, fail(ErrorCode::NotFound, "the tenant listens nowhere"));
  connection.answer(abi::Done{}, tenant->clients.listener());
}

void TenantClients::next_connection(Connection& connection, const abi::NextConnection& request) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return at_.answers.give(connection, not_in_that_role("accept"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { next_connection(then, request); }))
    return;
  const auto& open = tenant->clients.open();
  const Status room = open.upper_bound(request.after) != open.end() ? Status() : room_for_client(*tenant);
  if (room) told_full_.erase(tenant->name());
  if (!room) {
    if (told_full_.insert(tenant->name()).second)
      spdlog::warn("clients of tenant {} wait to be accepted: {}", tenant->name(), to_string(room.error()));
    return at_.answers.give(connection, {});
  }
  // The socket is the tenant's once it outlives us.
  const auto keep = [this, name = tenant->name()](const ClientConnections::Entry& added,
                                                  std::function<void()> kept) {
    put_away(connection_name(name, added.id), added.descriptor, [this, kept = std::move(kept)] {
      at_.records.save();
      kept();
    });
  };
  using Next = Result<ClientConnections::Entry>;
  tenant->clients.next(at_.loop, request.after, keep, [this, asker = connection.asker()](const Next& next) {
    at_.server.handle(asker, [&](Connection& then) { answer_with_client(then, next); });
  });
}

Status TenantClients::room_for_client(const Tenant& tenant) const {
  const auto user = at_.credentials.owner_of(tenant.name());
  std::size_t of_user = 0;
  for (const auto& [name, each] : at_.tenants.all()) {
    if (at_.credentials.owner_of(name) == user) of_user += each->clients.open().size();
  }
  if (of_user >= at_.options.clients_of_user_max)
    return fail(ErrorCode::ResourceExhausted, "its user's tenants have as many as are kept");
  return at_.budget.room_for_client(tenant.name());
}

/// The question may have waited, and another may be the active one by now.
void TenantClients::answer_with_client(Connection& connection, const Result<ClientConnections::Entry>& next) {
  if (at_.tenants.of(connection, &Tenant::active) == nullptr)
    return at_.answers.give(connection, not_in_that_role("accept"));
  if (next) return connection.answer(abi::ClientConnection{next->id}, next->descriptor);
  const bool nobody_waits = next.error().code == ErrorCode::Timeout;
  at_.answers.give(connection, nobody_waits ? Status{} : propagate(next));
}

bool TenantClients::is_idle() const {
  return std::ranges::all_of(at_.tenants.all(),
                             [](const auto& each) { return each.second->clients.is_idle(); });
}

void TenantClients::release(Connection& connection, const abi::ReleaseConnection& request) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return at_.answers.give_once(connection, not_in_that_role("release"));
  if (is_put_off(connection, *tenant, [=, this](Connection& then) { release(then, request); })) return;
  // Else the agent before died before it answered.
  if (tenant->clients.open().contains(request.id)) {
    tenant->clients.release(request.id);
    at_.shelves.drop(connection_name(tenant->name(), request.id));
  }
  at_.answers.give_once(connection, {});
}

/// Connections have their numbers alone until the shelves have said what there is.
void TenantClients::restore(Tenant& tenant, const KeptTenant& kept) {
  std::vector<std::string> names = {listener_name(kept.name)};
  std::map<std::uint64_t, os::Fd> numbers;
  for (const std::uint64_t id : kept.connections) {
    names.push_back(connection_name(kept.name, id));
    numbers.emplace(id, os::Fd());
  }
  tenant.clients.restore(kept.last_connection, {}, std::move(numbers));
  tenant.await_answer();
  at_.shelves.get(std::move(names), [this, name = kept.name, ids = kept.connections,
                                     last = kept.last_connection](std::vector<os::Fd> descriptors) {
    Tenant* found = at_.tenants.find(name);
    if (found == nullptr) return;
    std::map<std::uint64_t, os::Fd> open;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (descriptors[i + 1]) open.emplace(ids[i], std::move(descriptors[i + 1]));
    }
    found->clients.restore(last, std::move(descriptors.front()), std::move(open));
    found->answered();
  });
}

/// True when what the shelves have of it is not known yet: then it is done later, for who asks now.
bool TenantClients::is_put_off(const Connection& connection, Tenant& tenant,
                               std::function<void(Connection&)> what) {
  return tenant.put_off(
      [this, asker = connection.asker(), what = std::move(what)] { at_.server.handle(asker, what); });
}

/// The connection outlives us once it lies on a shelf.
void TenantClients::put_away(const std::string& name, int descriptor, std::function<void()> done) {
  if (!at_.records.are_kept()) return done();
  at_.shelves.put(name, descriptor, [name, done = std::move(done)](const Status& put) {
    if (!put) spdlog::error("{} would not outlive the agent: {}", name, to_string(put.error()));
    done();
  });
}

}  // namespace firebreak::agent
