// SPDX-License-Identifier: Apache-2.0
/// Who computes now, of those who want one GPU: a pure function of who wanted it so far. Tenants change
/// between two of their steps.
///
/// Whoever is more urgent goes at once, and of equals each has a turn. Who has waited for the longest time
/// that anybody may is next whatever others want, and then has a whole turn. So of n who want the GPU nobody
/// waits longer than bound(n), and somebody goes whenever anybody wants to.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "agent/turns/policy.h"
#include "ground/base/clock.h"

namespace firebreak::turns {

struct Limits {
  Nanoseconds longest_wait = std::chrono::milliseconds(2'000);

  Nanoseconds turn() const { return longest_wait / 10; }
  /// A difference in urgency below it is none: a change costs the GPU a part of a step.
  Nanoseconds margin() const { return turn() / 10; }
  Nanoseconds bound(std::size_t claims) const {
    return longest_wait + static_cast<std::int64_t>(claims + 1) * turn();
  }
};

struct TurnState {
  std::string going;      ///< who has the turn; empty: nobody
  Monotonic began{};      ///< when its turn began
  bool is_whole = false;  ///< it had waited so long that nobody takes a part of its turn
  std::map<std::string, Monotonic, std::less<>> waiting;  ///< all others, and since when
};

/// Brings the turns up to date. `claims`: of everybody who wants something, and can compute; each tenant
/// once. Returns when to look again though nothing has happened; none: nobody waits.
std::optional<Nanoseconds> advance(const Policy& policy, const Limits& limits, TurnState& state,
                                   std::span<const Claim> claims, Monotonic now);

/// Turns of several users: each has a share of the time, whatever its tenants say of themselves, and what
/// they say counts in that share.
struct Round {
  TurnState users;
  std::map<std::string, TurnState, std::less<>> of_user;
  Monotonic looked{};  ///< when it was advanced last

  /// Everybody but one, and for how long; a tenant of a user whose turn it is not waits as well.
  std::map<std::string, Monotonic, std::less<>> waiting() const;
};

/// As above. `Claim::user` says whose each is.
std::optional<Nanoseconds> advance(const Policy& policy, const Limits& limits, Round& round,
                                   std::span<const Claim> claims, Monotonic now);

}  // namespace firebreak::turns
