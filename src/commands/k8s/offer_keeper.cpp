// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/offer_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace firebreak::k8s {

OfferKeeper::OfferKeeper(OfferRules rules)
    : rules_(std::move(rules)), offer_(std::make_shared<const Offer>()) {}

bool OfferKeeper::agent_said(const link::StatusView& status, Monotonic now) {
  heard_at_ = now;
  Offer next;
  const Status socket = status.tenants_socket.empty()
                            ? Status{}
                            : seats::check_tenants_socket(status.tenants_socket, rules_.agent_socket);
  if (!socket) return replace(std::move(next), ": " + socket.error().message);
  next.common = {status.tenants_socket, rules_.guard_library, rules_.shared_memory};
  std::string reasons;
  for (const link::DomainView& domain : status.domains) {
    if (!seats::check_domain_name(domain.name)) continue;
    const Status mounted = check_directory(status, domain.name);
    if (!mounted) reasons += fmt::format("{}{}", reasons.empty() ? "" : ", ", mounted.error().message);
    if (!mounted) continue;
    const bool is_healthy = link::takes_clients(status, domain);
    if (!is_healthy)
      reasons +=
          fmt::format("{}{} ({})", reasons.empty() ? "" : ", ", domain.name, link::state_of(status, domain));
    for (std::uint32_t number = 1; number <= rules_.seats_of_domain; ++number)
      next.seats.push_back({seats::seat_name(domain.name, number), domain.name, domain.gpu, is_healthy,
                            !domain.gpu_needs.empty()});
  }
  return replace(std::move(next), reasons.empty() ? "" : ": not those of " + reasons);
}

Status OfferKeeper::check_directory(const link::StatusView& status, const std::string& domain) const {
  if (!rules_.check_directory || status.tenants_socket.empty()) return {};
  return rules_.check_directory(seats::domain_at(status.tenants_socket, domain));
}

bool OfferKeeper::agent_is_away(Monotonic now) {
  if (!heard_at_ || now - *heard_at_ < rules_.agent_patience) return false;
  Offer next = *offer_;
  for (OfferedSeat& seat : next.seats) seat.is_healthy = false;
  return replace(std::move(next), ": the agent does not answer");
}

bool OfferKeeper::replace(Offer next, std::string reasons) {
  const bool is_same = next.seats == offer_->seats &&
                       next.common.tenants_socket == offer_->common.tenants_socket && reasons == reasons_;
  if (is_same) return false;
  offer_ = std::make_shared<const Offer>(std::move(next));
  reasons_ = std::move(reasons);
  return true;
}

std::string OfferKeeper::described() const {
  if (!heard_at_) return "no agent is known";
  const auto healthy = std::ranges::count_if(offer_->seats, &OfferedSeat::is_healthy);
  return fmt::format("{} of {} seats are healthy{}", healthy, offer_->seats.size(), reasons_);
}

}  // namespace firebreak::k8s
