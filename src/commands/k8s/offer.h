// SPDX-License-Identifier: Apache-2.0
/// The seats that the kubelet is offered, and what a container gets that has some of them. Pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/seats/seats.h"

namespace firebreak::k8s {

struct OfferedSeat {
  std::string id;  ///< "a-1", as `firebreak cdi` calls it
  std::string domain;
  std::string gpu;
  bool is_healthy = false;
  bool gpu_failed = false;  ///< nobody can say when it will be healthy
  bool operator==(const OfferedSeat&) const = default;
};

struct Offer {
  std::vector<OfferedSeat> seats;
  seats::CommonGrant common;  ///< its socket is empty where no agent has answered yet

  /// Null: there is none of that name.
  const OfferedSeat* find(const std::string& id) const;
};

/// Whoever answers the kubelet has one as it was at one time.
using SharedOffer = std::shared_ptr<const Offer>;

/// Makes the grant of a container with those seats. With seats in several domains it can reach all of these,
/// and its environment names the first, a healthy one if it can be. NotFound: there is no such seat.
/// InvalidArgument: a seat is named twice, or none is. Unavailable: no agent has answered yet.
Result<seats::SeatGrant> grant_for(const Offer& offer, std::vector<std::string> ids);

}  // namespace firebreak::k8s
