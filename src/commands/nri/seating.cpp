// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/seating.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ground/base/text.h"
#include "shared/abi/wire.h"

namespace firebreak::nri {
namespace {

/// Names of pods have up to 253.
constexpr std::size_t most_of_name_bytes = 253;

using Domains = std::vector<const k8s::OfferedSeat*>;  ///< each by its first seat

std::uint64_t spread(std::string_view text) {
  const std::uint64_t hash = fnv1a(text);
  return hash ^ (hash >> 32);
}

Domains domains_of(const k8s::Offer& offer) {
  Domains all;
  for (const k8s::OfferedSeat& seat : offer.seats) {
    const auto is_it = [&](const auto* other) { return other->domain == seat.domain; };
    if (std::ranges::none_of(all, is_it)) all.push_back(&seat);
  }
  return all;
}

std::string names_of(const Domains& domains) {
  std::string names;
  for (const auto* domain : domains) names += (names.empty() ? "" : ", ") + domain->domain;
  return names;
}

tl::unexpected<Error> takes_nobody(const std::string& domain) {
  return fail(ErrorCode::Unavailable, fmt::format("domain {} takes no clients now", domain),
              "the kubelet tries again");
}

/// The one where it begins is first.
Result<Domains> choose(const Domains& all, const Wish& wish, const std::string& uid) {
  if (!wish.domain.empty()) {
    const auto found = std::ranges::find(all, wish.domain, [](const auto* seat) { return seat->domain; });
    if (found == all.end())
      return fail(ErrorCode::NotFound,
                  fmt::format("there is no domain '{}'", printable(wish.domain, most_of_name_bytes)),
                  "there are: " + names_of(all));
    return Domains{*found};
  }
  Domains fit;
  for (const auto* each : all) {
    const bool has_other =
        std::ranges::count(all, each->gpu, [](const auto* other) { return other->gpu; }) > 1;
    // A pair waits for domains that drain; for a GPU that needs a reset it would wait for ever.
    if (wish.part == PairPart::Alone ? each->is_healthy : has_other && !each->gpu_failed) fit.push_back(each);
  }
  if (fit.empty() && wish.part == PairPart::Alone)
    return fail(ErrorCode::Unavailable, "no domain takes clients now", "the kubelet tries again");
  if (fit.empty())
    return fail(ErrorCode::Unavailable, "a pair needs two domains of one GPU that is well",
                "firebreak status");
  const k8s::OfferedSeat* first = fit[spread(uid) % fit.size()];
  if (wish.part == PairPart::Alone) return Domains{first};
  std::erase_if(fit, [&](const auto* other) { return other->gpu != first->gpu; });
  std::ranges::rotate(fit, std::ranges::find(fit, first));
  fit.resize(2);
  if (wish.part == PairPart::Standby) std::ranges::reverse(fit);
  return fit;
}

void set(seats::SeatGrant& grant, const std::string& name, const std::string& value) {
  const auto same = [&](const auto& variable) { return variable.first == name; };
  std::erase_if(grant.environment, same);
  grant.environment.emplace_back(name, value);
}

/// What the container preloads of its own stays, in front of ours.
void keep_own_preload(seats::SeatGrant& grant, const Newcomer& newcomer) {
  constexpr std::string_view variable = "LD_PRELOAD=";
  for (const std::string& each : newcomer.environment) {
    if (!each.starts_with(variable) || each.size() == variable.size()) continue;
    for (auto& [name, value] : grant.environment) {
      if (name == "LD_PRELOAD") value = each.substr(variable.size()) + ":" + value;
    }
  }
}

/// The pod's name, which is also the tenant's: a pod that comes anew under it goes on with its memory.
std::string tenant_of(const Newcomer& newcomer) {
  const std::string name = newcomer.pod_namespace + "." + newcomer.pod;
  return abi::check_name(name) ? name : newcomer.pod_uid;
}

}  // namespace

std::string described(const Newcomer& newcomer) {
  const auto shown = [](const std::string& text) { return printable(text, most_of_name_bytes); };
  return fmt::format("{}/{}: {}", shown(newcomer.pod_namespace), shown(newcomer.pod),
                     shown(newcomer.container));
}

bool lacks_its_seat(const Newcomer& made) {
  const auto wish = wish_of(made.annotations, made.container);
  const auto is_of_a_seat = [](const std::string& each) { return each.starts_with("FIREBREAK_SOCKET="); };
  return (!wish || *wish) && std::ranges::none_of(made.environment, is_of_a_seat);
}

Result<std::optional<seats::SeatGrant>> seat_for(const k8s::Offer& offer, const Newcomer& newcomer,
                                                 const Actives& actives) {
  const auto wish = wish_of(newcomer.annotations, newcomer.container);
  if (!wish) return propagate(wish);
  if (!*wish) return std::nullopt;
  if (offer.common.tenants_socket.empty())
    return fail(ErrorCode::Unavailable, "no agent has answered yet", "start firebreakd");
  if (std::ranges::find(newcomer.mounted_at, offer.common.tenants_socket) != newcomer.mounted_at.end())
    return fail(ErrorCode::InvalidArgument, "it has a seat by a device request and by an annotation",
                "one of them is enough");
  const auto domains = choose(domains_of(offer), **wish, newcomer.pod_uid);
  if (!domains) return propagate(domains);
  if (!domains->front()->is_healthy) return takes_nobody(domains->front()->domain);
  std::vector<std::string> ids;
  for (const auto* domain : *domains) ids.push_back(domain->id);
  auto grant = k8s::grant_for(offer, std::move(ids));
  if (!grant) return propagate(grant);
  const auto own = seats::domain_at(offer.common.tenants_socket, domains->front()->domain);
  set(*grant, "CUDA_MPS_PIPE_DIRECTORY", own.pipe_directory);
  keep_own_preload(*grant, newcomer);
  if ((*wish)->part == PairPart::Alone) return std::move(*grant);
  const std::string tenant = tenant_of(newcomer);
  const auto active = actives.find(tenant);
  const bool other_is_active = active != actives.end() && active->second != domains->front()->domain;
  const bool is_active = (*wish)->part == PairPart::Active && !other_is_active;
  set(*grant, "FIREBREAK_TENANT", tenant);
  set(*grant, "FIREBREAK_ROLE", is_active ? "active" : "standby");
  return std::move(*grant);
}

}  // namespace firebreak::nri
