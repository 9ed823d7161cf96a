// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace firebreak::k8s {
namespace {

/// Finds them all; programs begin in the first one.
Result<std::vector<const OfferedSeat*>> find_all(const Offer& offer, std::vector<std::string> ids) {
  std::ranges::sort(ids);
  if (ids.empty()) return fail(ErrorCode::InvalidArgument, "no seat is named");
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    return fail(ErrorCode::InvalidArgument, fmt::format("seat '{}' is named twice", *twice));
  std::vector<const OfferedSeat*> found;
  for (const std::string& id : ids) {
    found.push_back(offer.find(id));
    if (found.back() == nullptr) return fail(ErrorCode::NotFound, fmt::format("there is no seat '{}'", id));
  }
  std::ranges::stable_partition(found, [](const OfferedSeat* seat) { return seat->is_healthy; });
  return found;
}

void add(seats::SeatGrant& grant, const seats::SeatGrant& more) {
  for (const auto& variable : more.environment) {
    const auto has_it = [&](const auto& other) { return other.first == variable.first; };
    if (std::ranges::none_of(grant.environment, has_it)) grant.environment.push_back(variable);
  }
  for (const seats::SeatMount& mount : more.mounts) {
    if (std::ranges::find(grant.mounts, mount) == grant.mounts.end()) grant.mounts.push_back(mount);
  }
}

}  // namespace

const OfferedSeat* Offer::find(const std::string& id) const {
  const auto found = std::ranges::find(seats, id, &OfferedSeat::id);
  return found == seats.end() ? nullptr : &*found;
}

Result<seats::SeatGrant> grant_for(const Offer& offer, std::vector<std::string> ids) {
  if (offer.common.tenants_socket.empty())
    return fail(ErrorCode::Unavailable, "no agent has answered yet", "start firebreakd");
  const auto found = find_all(offer, std::move(ids));
  if (!found) return propagate(found);
  seats::SeatGrant grant = seats::grant_of_all(offer.common);
  for (const OfferedSeat* seat : *found)
    add(grant, seats::grant_of(seats::domain_at(offer.common.tenants_socket, seat->domain)));
  return grant;
}

}  // namespace firebreak::k8s
