// SPDX-License-Identifier: Apache-2.0
/// Faults on purpose inside a tenant: passed on to it, and its word passed back. The tenant decides.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/loop/server.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenants.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Injections {
 public:
  struct Knows {
    Server& server;
    Tenants& tenants;
    Answers& answers;
    Teller& teller;
  };
  explicit Injections(Knows knows) : at_(knows) {}

  void inject(Connection& connection, const abi::Inject& request);
  void injected(Connection& connection, const abi::Injected& report);
  void on_closed(const Connection& connection);

 private:
  struct Pending {
    Asker asker;
    std::string kind;
  };

  void end(std::uint64_t tenant_connection, const abi::Message& answer);

  Knows at_;
  std::map<std::uint64_t, Pending> pending_;  ///< pending faults by the connection of the tenant that is
                                              ///< asked
};

}  // namespace firebreak::agent
