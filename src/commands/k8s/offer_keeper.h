// SPDX-License-Identifier: Apache-2.0
/// Decides what is offered, by what the agent says and by how long it has said nothing. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "commands/k8s/offer.h"
#include "ground/base/clock.h"
#include "shared/link/status_view.h"

namespace firebreak::k8s {

struct OfferRules {
  std::string agent_socket;  ///< the tenants' one lies beside it
  /// Tells whether a domain's directories are to be mounted (seats::check_directory); null: they are not
  /// looked at.
  std::function<Status(const seats::SeatDomain&)> check_directory = nullptr;
  std::uint32_t seats_of_domain = 1;
  /// Time for which an agent that is away, as in a restart or an upgrade, changes nothing: MPS domains live
  /// on without it. Then nobody knows how they are, and no seat is healthy.
  Nanoseconds agent_patience{0};
  std::string guard_library;  ///< as of CommonGrant
  std::string shared_memory;
};

/// Keeps the offer, for one thread; the offers that it gives out are everybody's.
class OfferKeeper {
 public:
  explicit OfferKeeper(OfferRules rules);

  /// Tells whether the offer has changed. A domain whose name is no device's has no seats, nor has one whose
  /// directories are not to be mounted, and none has any where the tenants' socket lies elsewhere.
  bool agent_said(const link::StatusView& status, Monotonic now);
  bool agent_is_away(Monotonic now);

  const SharedOffer& offer() const { return offer_; }
  /// "4 of 8 seats are healthy: not those of b (draining)"; "no agent is known".
  std::string described() const;

 private:
  bool replace(Offer next, std::string reasons);
  Status check_directory(const link::StatusView& status, const std::string& domain) const;

  OfferRules rules_;
  SharedOffer offer_;
  std::string reasons_;  ///< why seats are not healthy
  std::optional<Monotonic> heard_at_;
};

}  // namespace firebreak::k8s
