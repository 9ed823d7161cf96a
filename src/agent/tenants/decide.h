// SPDX-License-Identifier: Apache-2.0
/// Decides what follows from an event for all tenants that it concerns, as a pure function: no clock, no I/O.
/// The order is: the promotions of all of them, then signals and timers, then what is told. Whoever waits for
/// a promotion waits for nothing else, so nothing here allocates (Effects keeps its storage).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/tenants/pair/pair.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// One of a tenant's two processes. What is viewed outlives the decision.
struct Half {
  std::string_view domain;
  bool is_there = false;  ///< the process runs, or is dead and held for its last kernel
};

/// The facts about a tenant that decisions need. `pair` is where its pair stands, before and after.
struct TenantFacts {
  pair::State pair;
  Half active;
  Half standby;
  bool standby_is_warm = false;  ///< ready, but that its MPS server is not known
};

/// A detector has seen a fault in that domain.
struct FaultSeen {
  std::string_view domain;
  pair::EventType means = pair::EventType::DangerSeen;  ///< meaning for an active there
  bool ends_clients = false;                            ///< the event ends all clients of that domain
};
/// Something may have happened in that domain.
struct DangerSeen {
  std::string_view domain;  ///< empty: in any
};
/// The contexts of that domain's clients are gone.
struct ClientsLost {
  std::string_view domain;
};
/// A process has ended, and nobody keeps its GPU address space; its half is there no more.
struct Exited {
  static constexpr std::size_t nobody = SIZE_MAX;
  std::size_t tenant = nobody;  ///< tenant whose active or standby it was
  abi::Role role = abi::Role::Active;
  bool has_left = false;             ///< the process left in good order, by its own word
  std::string_view endangered = {};  ///< the domain that it may take along; empty: none
};
/// Something that concerns one tenant.
struct OfTenant {
  std::size_t tenant = 0;
  pair::EventType event{};
};
/// A tenant that was taken up from another agent, which may not have done all that follows from where its
/// pair stands.
struct TakenUp {
  std::size_t tenant = 0;
  std::uint32_t promoted_epoch = 0;  ///< epoch that its shared page says
};
using Happening = std::variant<FaultSeen, DangerSeen, ClientsLost, Exited, OfTenant, TakenUp>;

struct Promotion {
  std::size_t tenant = 0;
  std::uint32_t epoch = 0;
};

/// A signal, a timer, or a store that nobody waits for.
struct Act {
  std::size_t tenant = 0;
  pair::ActionType type{};
  std::int64_t deadline_ms = 0;
  std::uint32_t epoch = 0;
  std::string_view why;  ///< reason of an end, in static text
};

/// Something to tell people of.
struct Told {
  enum class What { Action, Phase, StoodBy };
  What what{};
  std::size_t tenant = 0;
  pair::Action action = {};    ///< action: Promote, BeginEpoch, or one that tells
  std::uint32_t epoch = 0;     ///< epoch of that moment
  pair::EventType cause = {};  ///< cause of a Phase, and of a promotion
  pair::Phase before = {};
  pair::Phase after = {};
};

/// Lists that keep their storage from one decision to the next. They are carried out in this order.
struct Effects {
  std::vector<Promotion> promotions;
  std::vector<Act> acts;
  std::vector<Told> told;

  /// Reserves room, so that a decision about so many tenants allocates nothing.
  void reserve(std::size_t tenants);
  void clear();
};

/// `tenants`: all that may be concerned, as they are now; afterwards as they are then. `effects` is cleared
/// first. Each tenant is promoted at most once.
void decide(std::vector<TenantFacts>& tenants, const Happening& happening, Effects& effects);

}  // namespace firebreak::agent
