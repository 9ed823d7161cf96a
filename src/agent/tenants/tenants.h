// SPDX-License-Identifier: Apache-2.0
/// All tenants, and the connection of each process.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "agent/loop/server.h"
#include "agent/tenants/tenant.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Tenants {
 public:
  using Map = std::map<std::string, std::unique_ptr<Tenant>>;

  /// Returns them by their names. Going through them allocates nothing.
  const Map& all() const { return tenants_; }
  /// Null: there is none.
  Tenant* find(const std::string& name) const;
  bool contains(const std::string& name) const { return tenants_.contains(name); }
  /// How many of all() come before it.
  std::size_t index_of(const Tenant& tenant) const;

  /// Puts a tenant in the place of one of its name.
  Tenant& put(std::unique_ptr<Tenant> tenant);
  void erase(const std::string& name) { tenants_.erase(name); }

  /// Returns the tenant whose process in that role it is; null: nobody's.
  Tenant* of(const Connection& connection, Member Tenant::*member) const;
  /// Returns the tenant in whichever role.
  Tenant* of(const Connection& connection) const;
  Member* member_of(const Connection& connection) const;
  /// NotFound: nobody serves under that name.
  Result<Connection*> active_of(const std::string& name, Server& server) const;

 private:
  Map tenants_;
};

}  // namespace firebreak::agent
