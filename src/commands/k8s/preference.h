// SPDX-License-Identifier: Apache-2.0
/// Decides which seats a container is best given. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/k8s/offer.h"

namespace firebreak::k8s {

struct SeatWish {
  std::vector<std::string> available;
  std::vector<std::string> must_include;  ///< seats among those
  std::int32_t size = 0;
};

/// Picks so many seats, of one GPU as long as it has any, spread over its domains: a pair's active and its
/// standby have to be in two. Between domains it prefers the one with more seats left, between GPUs the one
/// that has more domains to offer. Seats of which we do not know come last. InvalidArgument: more are wanted
/// than there are, or fewer than have to be included.
Result<std::vector<std::string>> preferred_seats(const Offer& offer, const SeatWish& wish);

}  // namespace firebreak::k8s
