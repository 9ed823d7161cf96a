// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace firebreak::agent {
namespace {

bool is_undecided(pair::Phase phase) {
  return phase == pair::Phase::Suspecting || phase == pair::Phase::Orphaned;
}

/// The driver's words of a parked domain's fall come together; the merger's window is as long.
constexpr Milliseconds fall_takes{1'000};

/// Empty: nobody is named.
std::string name_of(const fault::Culprit& culprit) {
  if (!culprit.pid) return {};
  return culprit.tenant.value_or(fmt::format("process {}", *culprit.pid));
}

}  // namespace

Fence fence_of(pair::EventType cause) {
  switch (cause) {
    case pair::EventType::FenceSeen:
      return Fence::Xid;
    case pair::EventType::ActiveExited:
      return Fence::Exit;
    case pair::EventType::ActiveStoodDown:
      return Fence::HandOver;
    default:
      return Fence::Earlier;
  }
}

void Tally::begin(Counts before) {
  counts_ = std::move(before);
  ++counts_.agent_starts;
}

Counts Tally::counts() const {
  Counts all = counts_;
  for (const mps::DomainReport& report : at_.domains.reports()) {
    RestartCounts& its = all.domain_restarts[report.name];
    its.of_daemon += report.daemon_restarts;
    its.of_server += report.server_restarts;
  }
  return all;
}

/// Nobody may know at first where it was. Who was promoted before its first word came is in another domain by
/// now.
void Tally::note_affected(Fault& fault, const fault::Incident& incident) const {
  if (!fault.domain.empty()) return;
  fault.domain = incident.domain;
  if (!fault.domain.empty()) fault.affected.clear();
  for (const auto& [name, tenant] : at_.tenants.all()) {
    const auto promoted = promoted_.find(name);
    const bool has_left = was_promoted_since(name, fault.first_seen);
    const std::string& its = has_left ? promoted->second.left : tenant->active.domain;
    const bool is_there = has_left || tenant->active.pid != 0;
    const bool is_meant = fault.domain.empty() ? may_be_on(incident.gpu, its) : its == fault.domain;
    if (is_there && is_meant) fault.affected.insert(name);
  }
}

/// Of a GPU on which we have no domain nobody here is concerned.
void Tally::on_incident(const fault::Incident& incident) {
  if (!may_be_on(incident.gpu, incident.domain)) {
    open_.erase(incident.id);  // it may have become known only now
    return count_decided();
  }
  Fault& fault = open_[incident.id];
  fault.first_seen = incident.first_seen();
  note_affected(fault, incident);
  fault.fault_class = incident.fault_class;
  fault.culprit = incident.culprit.tenant;
  fault.told = {to_ns(incident.first_seen()),
                {},
                {},
                fault.domain,
                name_of(incident.culprit),
                incident.kind,
                incident.culprit.pid ? callbacks_.control_group_of(*incident.culprit.pid) : std::string()};
  fault.is_contained = is_contained(incident);
  if (!fault.is_parked && callbacks_.is_held(fault.domain)) {
    fault.is_parked = true;
    Parked& parked = parked_[fault.domain];
    // A second one while it is held is of the same time.
    if (parked.until < fault.first_seen || parked.incident == 0) parked = {incident.id, fault.first_seen};
  }
  fault.ends_domain = std::ranges::any_of(incident.signals, [](const fault::Fault& signal) {
    return signal.conclusive && fault::ends_group(signal);
  });
  for (const fault::Fault& signal : incident.signals) {
    // A process may have ended before the first word of it came.
    if (signal.tenant && fault::is_departure(signal)) fault.affected.insert(*signal.tenant);
    fault.names_exception |= signal.source == fault::FaultSource::CoreDump;
  }
  if (!incident.closed) return;
  if (!is_aftermath(incident.id, fault)) closed_.push_back(std::move(fault));
  open_.erase(incident.id);
  count_decided();
}

/// True for what the driver says as a parked domain falls, long after the exception: that fault is counted by
/// itself. Another exception has a name of its own, and is one more.
bool Tally::is_aftermath(std::uint64_t id, const Fault& fault) const {
  const auto found = parked_.find(fault.domain);
  if (found == parked_.end() || found->second.incident == id) return false;
  const bool is_of_its_time =
      found->second.since <= fault.first_seen && fault.first_seen <= found->second.until;
  return is_of_its_time && !fault.names_exception && fault.fault_class != fault::FaultClass::Termination;
}

void Tally::fell(const std::string& domain) {
  end_of_parking(domain);
  for (auto& [id, fault] : open_) {
    if (fault.domain == domain) note_fallen(fault);
  }
  for (Fault& fault : closed_) {
    if (fault.domain == domain) note_fallen(fault);
  }
  count_decided();
}

void Tally::end_of_parking(const std::string& domain) {
  const auto parked = parked_.find(domain);
  if (parked == parked_.end()) return;
  Monotonic& until = parked->second.until;
  until = std::min<Monotonic>(until, at_.clock.now() + fall_takes);
}

void Tally::note_fallen(Fault& fault) const {
  if (!fault.is_parked || std::exchange(fault.has_fallen, true)) return;
  for (const auto& [name, tenant] : at_.tenants.all()) {
    const Member& active = tenant->active;
    if (active.pid != 0 && active.domain == fault.domain && !callbacks_.can_outlive(active.pid))
      fault.fallen.insert(name);
  }
}

void Tally::contained(fault::FaultClass fault_class, PastFault fault) {
  counts_.note_fault(fault_class, FaultOutcome::Contained, std::move(fault));
}

void Tally::promoted(const std::string& tenant, const std::string& left, Fence fence) {
  ++counts_.of_promotion(fence);
  promoted_[tenant] = {at_.clock.now(), left};
  promoting_.insert(tenant);
}

void Tally::moved_on(const std::string& tenant, pair::Phase before, pair::Phase after) {
  if (before == pair::Phase::Promoting && promoting_.erase(tenant) > 0) {
    const bool serves = after == pair::Phase::Serving || after == pair::Phase::Finished;
    if (serves) counts_.promotion_times.add(at_.clock.now() - promoted_[tenant].when);
  }
  if (after == pair::Phase::Finished) finished_.insert(tenant);
  count_decided();
}

bool Tally::is_in_doubt(const Fault& fault) const {
  if (fault.is_parked && !fault.has_fallen && callbacks_.is_held(fault.domain)) return true;
  return std::ranges::any_of(fault.affected, [this](const std::string& name) {
    const Tenant* const tenant = at_.tenants.find(name);
    return tenant != nullptr && is_undecided(tenant->pair.phase);
  });
}

bool Tally::was_promoted_since(const std::string& tenant, Monotonic when) const {
  const auto found = promoted_.find(tenant);
  return found != promoted_.end() && found->second.when >= when;
}

bool Tally::has_ended(const std::string& tenant) const {
  const Tenant* const its = at_.tenants.find(tenant);
  return its == nullptr || its->active.pid == 0;
}

/// The culprit is one of those that ended where nobody is named: that is no loss of anybody else's.
FaultOutcome Tally::outcome_of(const Fault& fault) const {
  if (fault.is_contained) return FaultOutcome::Contained;
  bool has_failed_over = false;
  std::size_t lost = 0;
  for (const std::string& tenant : fault.affected) {
    const bool has_gone_on = was_promoted_since(tenant, fault.first_seen);
    has_failed_over |= has_gone_on;
    if (has_gone_on || fault.culprit == tenant || finished_.contains(tenant)) continue;
    if (is_lost(fault, tenant)) ++lost;
  }
  const bool is_its_own = lost == 1 && fault.told.culprit.empty();
  if (lost > 0 && !is_its_own) return FaultOutcome::Lost;
  if (fault.is_parked) return FaultOutcome::Parked;
  return has_failed_over ? FaultOutcome::FailedOver : FaultOutcome::Contained;
}

/// A process that ended while its domain was held has left it.
bool Tally::is_lost(const Fault& fault, const std::string& tenant) const {
  if (fault.is_parked) return fault.fallen.contains(tenant);
  return fault.ends_domain || has_ended(tenant);
}

void Tally::count(const Fault& fault) {
  if (fault.is_parked) end_of_parking(fault.domain);
  counts_.note_fault(fault.fault_class, outcome_of(fault), fault.told);
}

void Tally::count_decided() {
  std::erase_if(closed_, [this](const Fault& fault) {
    if (is_in_doubt(fault)) return false;
    count(fault);
    return true;
  });
  if (!closed_.empty() || !open_.empty()) return;
  finished_.clear();
  std::erase_if(promoted_, [this](const auto& each) { return !at_.tenants.contains(each.first); });
  std::erase_if(promoting_, [this](const auto& each) { return !at_.tenants.contains(each); });
}

}  // namespace firebreak::agent
