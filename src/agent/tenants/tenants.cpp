// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tenants.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

namespace firebreak::agent {
namespace {

constexpr std::array all_members = {&Tenant::active, &Tenant::standby, &Tenant::old_active};

}  // namespace

Tenant* Tenants::find(const std::string& name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? nullptr : found->second.get();
}

std::size_t Tenants::index_of(const Tenant& tenant) const {
  return static_cast<std::size_t>(std::distance(tenants_.begin(), tenants_.find(tenant.name())));
}

Tenant& Tenants::put(std::unique_ptr<Tenant> tenant) {
  const std::string name = tenant->name();
  return *tenants_.insert_or_assign(name, std::move(tenant)).first->second;
}

Tenant* Tenants::of(const Connection& connection, Member Tenant::*member) const {
  for (const auto& [name, tenant] : tenants_) {
    if (((*tenant).*member).connection == connection.id()) return tenant.get();
  }
  return nullptr;
}

Tenant* Tenants::of(const Connection& connection) const {
  for (Member Tenant::*member : all_members) {
    if (Tenant* tenant = of(connection, member)) return tenant;
  }
  return nullptr;
}

Member* Tenants::member_of(const Connection& connection) const {
  for (Member Tenant::*member : all_members) {
    if (Tenant* tenant = of(connection, member)) return &(tenant->*member);
  }
  return nullptr;
}

Result<Connection*> Tenants::active_of(const std::string& name, Server& server) const {
  const Tenant* tenant = find(name);
  Connection* active = tenant == nullptr ? nullptr : server.find(tenant->active.connection);
  if (active != nullptr) return active;
  return fail(ErrorCode::NotFound, fmt::format("no tenant '{}' has an active process", name));
}

}  // namespace firebreak::agent
