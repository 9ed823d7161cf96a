// SPDX-License-Identifier: Apache-2.0
/// Who is told to run where, and with how much of the GPU.
#include <algorithm>

#include "agent/agent.h"
#include "agent/placement.h"

namespace firebreak::agent {
namespace {

/// They are written into one document, and are there for the moment between the question and the start.
constexpr std::size_t most_kept_placements = 256;

}  // namespace

Result<abi::Placed> Agent::place(const Connection& connection, const abi::Place& request) {
  if (auto good = abi::check_name(request.tenant); !good) return propagate(good);
  const mps::ClientLimits limits = limits_for(request);
  if (auto good = mps::check_limits(limits); !good) return propagate(good);
  const auto domain = domain_for(request.tenant, request.role, request.gpu);
  if (!domain) return propagate(domain);
  if (auto room = room_for_process_of(request.tenant); !room) return propagate(room);
  auto token = credentials_.token_of(request.tenant);
  if (!token) return propagate(token);
  forget_placements(connection.id());
  placements_.push_back({connection.id(), request.tenant, request.role, *domain, limits});

  abi::Placed placed;
  placed.environment = options_.tenant_environment;
  for (auto& variable : domains_.environment(*domain)) placed.environment.push_back(std::move(variable));
  for (auto& variable : mps::environment_of(limits)) placed.environment.push_back(std::move(variable));
  placed.environment.emplace_back("FIREBREAK_SOCKET", options_.socket_path);
  placed.environment.emplace_back("FIREBREAK_TENANT", request.tenant);
  placed.environment.emplace_back("FIREBREAK_TOKEN", *token);
  placed.environment.emplace_back("FIREBREAK_ROLE", abi::to_string(request.role));
  placed.environment.emplace_back("FIREBREAK_AGENT_RETURNS_MS", std::to_string(returns_ms()));
  placed.agent_returns_ms = returns_ms();
  save();  // before it is told: whoever is started by it may be adopted by the next agent
  return placed;
}

mps::ClientLimits Agent::limits_for(const abi::Place& request) const {
  mps::ClientLimits limits = options_.limits;
  if (request.sm_percent != 0) limits.sm_percent = request.sm_percent;
  if (request.memory_mib != 0) limits.memory_mib = request.memory_mib;
  return limits;
}

/// Where such a process runs that has come now: where it was told to, however the domains are by now. One
/// that was told nothing runs where it would be told to.
Agent::Placement Agent::take_placement(const std::string& tenant, abi::Role role) {
  const auto found = std::ranges::find_if(
      placements_, [&](const Placement& each) { return each.tenant == tenant && each.role == role; });
  if (found == placements_.end()) {
    return {0, tenant, role, domain_for(tenant, role, {}).value_or(domains_.names().front()), {}};
  }
  Placement placement = std::move(*found);
  placements_.erase(found);
  return placement;
}

/// With the token of whom nothing else is known.
void Agent::forget_placements(std::uint64_t connection) {
  std::erase_if(placements_, [&](const Placement& each) {
    if (each.connection != connection) return false;
    if (!tenants_.contains(each.tenant)) credentials_.forget(each.tenant);
    return true;
  });
}

std::vector<KeptPlacement> Agent::kept_placements() const {
  std::vector<KeptPlacement> kept;
  for (const Placement& each : placements_) {
    if (kept.size() == most_kept_placements) break;
    kept.push_back(
        {each.tenant, each.role, each.domain, each.limits, credentials_.known_token_of(each.tenant)});
  }
  return kept;
}

/// Without those who were adopted before that was written down. They hold as long as anybody waits for us.
void Agent::restore_placements(const std::vector<KeptPlacement>& kept) {
  for (const KeptPlacement& each : kept) {
    Tenant* tenant = tenants_.find(each.tenant);
    if (tenant != nullptr && tenant->member(each.role).pid != 0) continue;
    if (tenant == nullptr) credentials_.restore(each.tenant, each.token);
    placements_.push_back({0, each.tenant, each.role, each.domain, each.limits});
  }
  if (placements_.empty()) return;
  placements_lease_ = loop_.after_or_now(Milliseconds(returns_ms()), [this] {
    forget_placements(0);
    save();
  });
}

Result<std::string> Agent::domain_for(const std::string& tenant, abi::Role role,
                                      const std::string& gpu) const {
  std::vector<Site> sites;
  for (const mps::DomainReport& report : domains_.reports()) {
    sites.push_back({report.name, report.gpu, report.takes_clients(), describe_state(report), 0});
    for (const auto& [name, other] : tenants_.all()) {
      if (other->active.pid != 0 && other->active.domain == report.name) ++sites.back().actives;
    }
    // Many that are started at once are all told before the first of them is there.
    for (const Placement& each : placements_) {
      if (each.role == abi::Role::Active && each.domain == report.name) ++sites.back().actives;
    }
  }
  return choose_domain(sites, {role, domain_of_half(tenant, role), gpu});
}

/// Of the tenant's process in the other role, also where that is still to come.
std::string Agent::domain_of_half(const std::string& tenant, abi::Role role) const {
  const abi::Role other = role == abi::Role::Active ? abi::Role::Standby : abi::Role::Active;
  if (Tenant* found = tenants_.find(tenant); found != nullptr) {
    const Member& member = other == abi::Role::Active ? found->active : found->standby;
    if (member.pid != 0) return member.domain;
  }
  const auto placed = std::ranges::find_if(
      placements_, [&](const Placement& each) { return each.tenant == tenant && each.role == other; });
  return placed == placements_.end() ? std::string() : placed->domain;
}

}  // namespace firebreak::agent
