// SPDX-License-Identifier: Apache-2.0
/// All tenants, and which of them a connection is of.
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

  /// By their names. To go through them allocates nothing.
  const Map& all() const { return tenants_; }
  /// Null: there is none.
  Tenant* find(const std::string& name) const;
  bool contains(const std::string& name) const { return tenants_.contains(name); }
  /// How many of all() come before it.
  std::size_t index_of(const Tenant& tenant) const;

  /// In the place of one of its name.
  Tenant& put(std::unique_ptr<Tenant> tenant);
  void erase(const std::string& name) { tenants_.erase(name); }

  /// Whose process in that role it is; null: nobody's.
  Tenant* of(const Connection& connection, Member Tenant::*member) const;
  /// In whichever role.
  Tenant* of(const Connection& connection) const;
  Member* member_of(const Connection& connection) const;
  /// NotFound: nobody serves under that name.
  Result<Connection*> active_of(const std::string& name, Server& server) const;

 private:
  Map tenants_;
};

}  // namespace firebreak::agent
