// SPDX-License-Identifier: Apache-2.0
/// Standbys that have warmed up, and are ready once the MPS server is known that has their context: the next
/// agent finds out that a server ended while there was none only of those that this one has written down.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/loop/server.h"
#include "agent/loop/surroundings.h"
#include "agent/tenants/kept_state.h"
#include "agent/tenants/tenants.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// A standby that sleeps, and could not tell that its context went with a server that ended while there was
/// no agent.
struct WarmStandby {
  pid_t pid = 0;
  std::optional<Asker> asker = {};  ///< none: it has come back so
};

/// These standbys, and the MPS servers that are known. Belongs to the loop's thread.
class WarmStandbys {
 public:
  struct Knows {
    os::EventLoop& loop;
    os::Kernel& kernel;
    Domains& domains;
    Server& server;
    Tenants& tenants;
  };
  /// The standby is ready. `but`: what is not as it should be; empty: all is.
  using StandBy =
      std::function<void(Tenant& tenant, const std::optional<Asker>& asker, const std::string& but)>;

  /// `patience`: how long the MPS server of a standby is looked for before that counts as ready without.
  WarmStandbys(Knows knows, Milliseconds patience, StandBy stand_by)
      : at_(knows), patience_(patience), stand_by_(std::move(stand_by)) {}

  /// Notes a standby that has warmed up: it stands by at once, or once its server is known, or nobody has
  /// patience any more.
  void warmed_up(Tenant& tenant, std::optional<Asker> asker);
  /// True when the tenant's standby is ready but for its server.
  bool is_warm(const Tenant& tenant) const { return find(tenant) != nullptr; }
  /// Takes one that is needed before its server is known; none: it was not warm.
  std::optional<WarmStandby> take(const Tenant& tenant);
  /// A server of that domain is known now.
  void let_stand_by_in(const std::string& domain);

  /// False: it was known. One that has ended there, and was replaced, is missed by nobody.
  bool add_server(const std::string& domain, pid_t pid);
  bool knows_server_of(const std::string& domain) const;
  const std::vector<KeptServer>& servers() const { return servers_; }
  /// Restores the servers as another agent knew them.
  void restore_servers(std::vector<KeptServer> servers) { servers_ = std::move(servers); }
  bool has_ended(const KeptServer& server) const;
  void forget_ended_servers();

 private:
  struct Waiting {
    WarmStandby standby;
    os::Watch patience = {};
  };

  const WarmStandby* find(const Tenant& tenant) const;
  void stand_by(const std::string& tenant, const std::string& but);

  Knows at_;
  Milliseconds patience_;
  StandBy stand_by_;
  std::map<std::string, Waiting> waiting_;  ///< standbys by their tenants
  std::vector<KeptServer> servers_;
};

}  // namespace firebreak::agent
