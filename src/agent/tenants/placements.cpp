// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/placements.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agent/domains/placement.h"

namespace firebreak::agent {
namespace {

/// Largest number that is kept. They are written into one document, and are there for the moment between the
/// question and the start.
constexpr std::size_t most_kept_placements = 256;

/// Behind "a is ".
std::string state_in_words(const mps::DomainReport& report) {
  return report.gpu_needs.empty() ? describe_state(report) : "not to be used: " + report.gpu_needs;
}

}  // namespace

Result<Placement> Placements::choose(std::uint64_t connection, const abi::Place& request) const {
  if (auto good = abi::check_name(request.tenant); !good) return propagate(good);
  const mps::ClientLimits limits = limits_for(request);
  if (auto good = mps::check_limits(limits); !good) return propagate(good);
  auto domain = domain_for(request.tenant, request.role, request.gpu);
  if (!domain) return propagate(domain);
  const bool wants_spare = request.spare || request.spare_if_there_is_one;
  auto spare = wants_spare ? spare_domain_for(*domain) : std::string();
  if (!spare && request.spare) return propagate(spare);
  if (!spare) spare = std::string();
  return Placement{connection, request.tenant, request.role, std::move(*domain), limits, std::move(*spare)};
}

/// The other one on its GPU, however it is now: it may take clients by the time when a spare is made.
Result<std::string> Placements::spare_domain_for(const std::string& domain) const {
  if (at_.domains.anchor_environment(domain).empty()) {
    const auto& tried = at_.options.spare_test;
    if (tried && tried->answer == guard::ProbeResult::Answer::Fails)
      return fail(ErrorCode::Unsupported, "spare driver instances do not work here: " + describe(*tried));
    return fail(ErrorCode::Unsupported, "this agent gives no spare driver instances",
                "start firebreakd with --spares");
  }
  const auto reports = at_.domains.reports();
  const auto own = std::ranges::find(reports, domain, &mps::DomainReport::name);
  const auto other = std::ranges::find_if(reports, [&](const mps::DomainReport& each) {
    return each.name != domain && own != reports.end() && each.gpu == own->gpu;
  });
  if (other != reports.end()) return other->name;
  return fail(ErrorCode::Unsupported, "there is no second MPS domain for a spare");
}

Result<abi::Placed> Placements::put(Placement placement, uid_t user, std::uint32_t agent_returns_ms) {
  forget(placement.connection);  // the token stays, where that was of the same tenant
  at_.credentials.claim(placement.tenant, user);
  auto token = at_.credentials.token_of(placement.tenant);
  if (!token) return propagate(token);
  placements_.push_back(std::move(placement));
  abi::Placed placed;
  placed.environment = environment_of(placements_.back(), *token, agent_returns_ms);
  placed.agent_returns_ms = agent_returns_ms;
  return placed;
}

Environment Placements::environment_of(const Placement& placement, const std::string& token,
                                       std::uint32_t agent_returns_ms) const {
  Environment all = at_.options.tenant_environment;
  // The driver that the program loads itself does no work where there is a spare.
  auto of_domain = placement.spare_domain.empty() ? at_.domains.environment(placement.domain)
                                                  : at_.domains.anchor_environment(placement.domain);
  for (auto& variable : of_domain) all.push_back(std::move(variable));
  for (auto& variable : mps::environment_of(placement.limits)) all.push_back(std::move(variable));
  all.emplace_back("FIREBREAK_SOCKET", at_.options.sockets().of_tenants());
  all.emplace_back("FIREBREAK_TENANT", placement.tenant);
  all.emplace_back("FIREBREAK_TOKEN", token);
  all.emplace_back("FIREBREAK_ROLE", abi::to_string(placement.role));
  all.emplace_back("FIREBREAK_AGENT_RETURNS_MS", std::to_string(agent_returns_ms));
  return all;
}

mps::ClientLimits Placements::limits_for(const abi::Place& request) const {
  mps::ClientLimits limits = at_.options.limits;
  if (request.sm_percent != 0) limits.sm_percent = request.sm_percent;
  if (request.memory_mib != 0) limits.memory_mib = request.memory_mib;
  return limits;
}

Placement Placements::take(const std::string& tenant, abi::Role role, const std::string& pipe_directory) {
  const auto found = std::ranges::find_if(
      placements_, [&](const Placement& each) { return each.tenant == tenant && each.role == role; });
  if (found == placements_.end()) {
    std::string domain = at_.domains.with_pipe_directory(pipe_directory);
    if (domain.empty()) domain = domain_for(tenant, role, {}).value_or(at_.domains.names().front());
    return {0, tenant, role, std::move(domain), {}};
  }
  Placement placement = std::move(*found);
  placements_.erase(found);
  placement.expected_in.insert(placement.domain);
  if (!placement.spare_domain.empty()) placement.expected_in.insert(placement.spare_domain);
  return placement;
}

void Placements::add_pipes(std::uint64_t connection, const std::vector<std::string>& pipes) {
  const auto found = std::ranges::find(placements_, connection, &Placement::connection);
  if (found != placements_.end()) found->pipes.insert(found->pipes.end(), pipes.begin(), pipes.end());
}

/// Forgets a placement, with the token of a tenant of which nothing else is known.
void Placements::forget(std::uint64_t connection) {
  std::set<std::string> gone;
  std::erase_if(placements_, [&](const Placement& each) {
    if (each.connection != connection) return false;
    gone.insert(each.tenant);
    at_.remove_pipes(each.pipes);
    return true;
  });
  for (const std::string& tenant : gone) {
    if (!at_.tenants.contains(tenant) && !has(tenant)) at_.credentials.forget(tenant);
  }
}

bool Placements::was_told(std::uint64_t connection, const std::string& tenant, abi::Role role) const {
  return std::ranges::any_of(placements_, [&](const Placement& each) {
    const bool is_its = each.connection == connection || each.connection == 0;
    return is_its && each.tenant == tenant && each.role == role;
  });
}

std::size_t Placements::count(const std::string& tenant) const {
  return static_cast<std::size_t>(std::ranges::count(placements_, tenant, &Placement::tenant));
}

bool Placements::has(const std::string& tenant) const { return count(tenant) > 0; }

std::set<std::string> Placements::coming() const {
  std::set<std::string> coming;
  for (const Placement& each : placements_) {
    if (!at_.tenants.contains(each.tenant)) coming.insert(each.tenant);
  }
  return coming;
}

/// Of too many the first of each user are kept, then the second of each, and so on: nobody's are left out for
/// another's.
std::vector<KeptPlacement> Placements::kept() const {
  std::map<std::optional<uid_t>, std::size_t> counts;
  std::vector<std::pair<std::size_t, const Placement*>> in_turns;
  for (const Placement& each : placements_)
    in_turns.emplace_back(counts[at_.credentials.owner_of(each.tenant)]++, &each);
  std::ranges::stable_sort(in_turns, {}, [](const auto& each) { return each.first; });
  in_turns.resize(std::min(in_turns.size(), most_kept_placements));
  std::vector<KeptPlacement> kept;
  for (const auto& [turn, each] : in_turns) {
    kept.push_back({each->tenant, each->role, each->domain, each->limits,
                    at_.credentials.known_token_of(each->tenant), at_.credentials.owner_of(each->tenant)});
  }
  return kept;
}

/// Restores them, without those who were adopted before that was written down.
void Placements::restore(const std::vector<KeptPlacement>& kept, Milliseconds lease,
                         std::function<void()> is_over) {
  for (const KeptPlacement& each : kept) {
    Tenant* tenant = at_.tenants.find(each.tenant);
    if (tenant != nullptr && tenant->member(each.role).pid != 0) continue;
    if (tenant == nullptr) at_.credentials.restore(each.tenant, each.token, each.owner);
    placements_.push_back({0, each.tenant, each.role, each.domain, each.limits});
  }
  if (placements_.empty()) return;
  lease_ = at_.loop.after_or_now(lease, [this, is_over = std::move(is_over)] {
    forget(0);
    is_over();
  });
}

Result<std::string> Placements::domain_for(const std::string& tenant, abi::Role role,
                                           const std::string& gpu) const {
  std::vector<Site> sites;
  for (const mps::DomainReport& report : at_.domains.reports()) {
    const bool is_to_fall = at_.is_to_fall(report.name);
    sites.push_back({report.name, report.gpu, report.takes_clients() && !is_to_fall,
                     is_to_fall ? "parked" : state_in_words(report), 0});
    for (const auto& [name, other] : at_.tenants.all()) {
      const Member& active = other->active;
      const bool is_there = active.pid != 0 && active.domain == report.name;
      if (is_there && at_.may_be_in(active.pid, report.name)) ++sites.back().actives;
    }
    // Many that are started at once are all told before the first of them is there.
    for (const Placement& each : placements_) {
      if (each.role == abi::Role::Active && each.domain == report.name) ++sites.back().actives;
    }
  }
  std::vector<std::string> machine_gpus;
  for (const MachineGpu& each : at_.options.gpus) machine_gpus.push_back(each.uuid);
  return choose_domain(sites, {role, domain_of_half(tenant, role), gpu, std::move(machine_gpus)});
}

/// Returns the domain of the tenant's process in the other role, also where that is still to come.
std::string Placements::domain_of_half(const std::string& tenant, abi::Role role) const {
  const abi::Role other = role == abi::Role::Active ? abi::Role::Standby : abi::Role::Active;
  if (Tenant* found = at_.tenants.find(tenant)) {
    const Member& member = found->member(other);
    if (member.pid != 0) return member.domain;
  }
  const auto placed = std::ranges::find_if(
      placements_, [&](const Placement& each) { return each.tenant == tenant && each.role == other; });
  return placed == placements_.end() ? std::string() : placed->domain;
}

}  // namespace firebreak::agent
