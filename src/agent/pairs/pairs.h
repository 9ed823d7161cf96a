// SPDX-License-Identifier: Apache-2.0
/// Carries out what follows from an event for pairs, in a fixed order: all promotions, then signals and
/// timers, then what is kept, then what is told.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/pairs/follower.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/promoter.h"
#include "agent/tenants/records.h"
#include "agent/tenants/tally.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/warm_standbys.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Pairs {
 public:
  struct Knows {
    os::EventLoop& loop;
    os::Kernel& kernel;
    const Clock& clock;
    Detectors& detectors;
    Server& server;
    Tenants& tenants;
    Processes& processes;
    WarmStandbys& warm_standbys;
    Tally& tally;
    Records& records;
    Answers& answers;
    Teller& teller;
    Follower& follower;
  };
  /// Tells of what brought it about: after what is kept, and before all else that is told.
  using Telling = std::function<void()>;

  explicit Pairs(Knows knows) : at_(knows), promoter_(knows.clock) {}

  /// Reserves room, so that an event of so many tenants allocates nothing before the last promotion.
  void reserve(std::size_t tenants) { promoter_.reserve(tenants); }

  /// Looks at all tenants; whoever is promoted by it has been woken before anything else.
  void happened(const Happening& happening, const Telling& first_told = {});
  /// Something that concerns that tenant alone.
  void advance(Tenant& tenant, pair::EventType event, const Telling& first_told = {});
  /// A process has ended, and nobody keeps its GPU address space. `tenant`: its own, null where it has none;
  /// `endangered`: the domain that it may take along, since it ended without a word and may have had work in
  /// flight.
  void exited(Tenant* tenant, pid_t pid, std::string_view endangered, const Telling& first_told = {});
  /// Takes a tenant up from another agent, which may not have done all that follows from where its pair
  /// stands.
  void take_up(Tenant& tenant);

  /// Its standby is ready. `but`: what is not as it should be; empty: all is.
  void stand_by(Tenant& tenant, const std::optional<Asker>& asker, const std::string& but);
  /// Words of the active's own.
  Status resumed(Connection& connection, const abi::Resumed& request);
  Status finish(Connection& connection);
  /// Ends it with SIGKILL.
  void end(const Member& member, std::string_view why);

 private:
  Exited take_out(Tenant* tenant, pid_t pid, std::string_view endangered);
  /// Carries it out in this order: signals and timers, what is kept, `first_told`, what is told.
  void carry_out(Decided decided, const Telling& first_told = {});
  void act(Tenant& tenant, const Act& act);
  void start_deadline(Tenant& tenant, Milliseconds delay);
  bool is_held_suspect(const Tenant& tenant) const;
  void look_for_first_step(Tenant& tenant);
  void tell(const Decided& decided, const Told& told);
  void tell_action(Tenant& tenant, const Decided& decided, const Told& told);
  void tell_stood_by(Tenant& tenant);
  void tell_protection(Tenant& tenant, bool has_standby);

  Knows at_;
  Promoter promoter_;
};

}  // namespace firebreak::agent
