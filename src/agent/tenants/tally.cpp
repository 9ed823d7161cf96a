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

constexpr const char* goes_on = "goes on";

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
  fault.standbys.clear();
  for (const auto& [name, tenant] : at_.tenants.all()) {
    const auto promoted = promoted_.find(name);
    const bool has_left = was_promoted_since(name, fault.first_seen);
    const std::string& its = has_left ? promoted->second.left : tenant->active.domain;
    const bool is_there = has_left || tenant->active.pid != 0;
    const bool is_meant = fault.domain.empty() ? may_be_on(incident.gpu, its) : its == fault.domain;
    if (is_there && is_meant) fault.affected.insert(name);
    const Member& standby = tenant->standby;
    if (standby.pid != 0 && !fault.domain.empty() && standby.domain == fault.domain)
      fault.standbys[name] = standby.pid;
  }
}

/// Of a GPU on which we have no domain nobody here is concerned.
std::string Tally::on_incident(const fault::Incident& incident) {
  if (!may_be_on(incident.gpu, incident.domain)) {
    open_.erase(incident.id);  // it may have become known only now
    count_decided();
    return {};
  }
  Fault& fault = open_[incident.id];
  fault.first_seen = incident.first_seen();
  note_affected(fault, incident);
  fault.fault_class = incident.fault_class;
  fault.culprit = incident.culprit.tenant;
  fault.told.at_ns = to_ns(incident.first_seen());
  fault.told.domain = fault.domain;
  fault.told.culprit = name_of(incident.culprit);
  fault.told.what = incident.kind;
  fault.told.control_group =
      incident.culprit.pid ? callbacks_.control_group_of(*incident.culprit.pid) : std::string();
  fault.told.xids = incident.xids;
  fault.told.saw = incident.culprit.evidence;
  fault.told.user = user_of(fault.told.culprit);
  identify(fault.told);
  fault.is_contained = is_contained(incident);
  if (!fault.is_parked && callbacks_.is_held(fault.domain)) {
    fault.is_parked = true;
    Parked& parked = parked_[fault.domain];
    // A second one while it is held is of the same time.
    if (parked.until < fault.first_seen || parked.incident == 0)
      parked = {incident.id, fault.told.id, fault.first_seen};
  }
  fault.ends_domain = std::ranges::any_of(incident.signals, [](const fault::Fault& signal) {
    return signal.conclusive && fault::ends_group(signal);
  });
  for (const fault::Fault& signal : incident.signals) {
    // A process may have ended before the first word of it came.
    if (signal.tenant && fault::is_departure(signal)) fault.affected.insert(*signal.tenant);
    fault.names_exception |= signal.source == fault::FaultSource::CoreDump;
  }
  if (fault.names_exception) take_reports(fault);
  const bool is_of_another = is_aftermath(incident.id, fault);
  std::string id = is_of_another ? parked_.at(fault.domain).fault : fault.told.id;
  if (!incident.closed) return id;
  if (is_of_another)
    add_aftermath(incident, id);
  else
    closed_.push_back(std::move(fault));
  open_.erase(incident.id);
  count_decided();
  return id;
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

/// The driver's lines of an exception come as its domain falls.
void Tally::add_aftermath(const fault::Incident& incident, const std::string& id) {
  const auto add = [&incident](PastFault& told) {
    for (const int xid : incident.xids) {
      if (std::ranges::find(told.xids, xid) == told.xids.end()) told.xids.push_back(xid);
    }
  };
  if (PastFault* const past = counts_.find(id)) add(*past);
  for (Fault& each : closed_) {
    if (each.told.id == id) add(each.told);
  }
}

/// Gives it its id and its moment by the wall clock, once.
void Tally::identify(PastFault& fault) {
  if (!fault.id.empty()) return;
  const auto now = callbacks_.wall_now ? callbacks_.wall_now() : std::chrono::system_clock::now();
  const auto ago = at_.clock.now() - from_ns(fault.at_ns);
  const WallTime at = now - std::chrono::duration_cast<WallTime::duration>(ago);
  fault.at = in_utc(at);
  fault.id = counts_.new_id(at);
}

void Tally::note_report(const std::string& domain, const std::string& report) {
  reports_[domain].push_back(report);
  for (auto& [id, fault] : open_) {
    if (fault.domain == domain && fault.names_exception) take_reports(fault);
  }
}

void Tally::take_reports(Fault& fault) {
  const auto found = reports_.find(fault.domain);
  if (found == reports_.end()) return;
  for (std::string& each : found->second) fault.told.reports.push_back(std::move(each));
  reports_.erase(found);
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
  identify(fault);
  fault.user = user_of(fault.culprit);
  Fault its;
  its.domain = fault.domain;
  its.culprit = fault.culprit;
  its.is_contained = true;
  its.first_seen = from_ns(fault.at_ns);
  for (const auto& [name, tenant] : at_.tenants.all()) {
    if (tenant->active.pid != 0 && tenant->active.domain == fault.domain) its.affected.insert(name);
  }
  fault.touched = touched_by(its);
  note(fault_class, FaultOutcome::Contained, std::move(fault));
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
  if (fault.is_parked && !touched_by(fault).empty()) return FaultOutcome::Parked;
  return has_failed_over ? FaultOutcome::FailedOver : FaultOutcome::Contained;
}

/// A process that ended while its domain was held has left it, and so has one that works elsewhere by now.
bool Tally::is_lost(const Fault& fault, const std::string& tenant) const {
  if (fault.is_parked) return fault.fallen.contains(tenant);
  return has_ended(tenant) || (fault.ends_domain && !fault.domain.empty() && !has_moved(fault, tenant));
}

bool Tally::has_moved(const Fault& fault, const std::string& tenant) const {
  const Tenant* const its = at_.tenants.find(tenant);
  return its != nullptr && !fault.domain.empty() && its->active.domain != fault.domain;
}

/// The outcome says no more than these words.
std::string Tally::became(const Fault& fault, const std::string& tenant) const {
  if (was_promoted_since(tenant, fault.first_seen)) return "its standby goes on";
  if (finished_.contains(tenant)) return "finished in good order";
  if (!fault.is_contained && is_lost(fault, tenant))
    return has_ended(tenant) ? "ended" : "lost with its domain";
  if (has_ended(tenant)) return fault.is_parked ? "ended before its domain fell" : "ended later";
  if (has_moved(fault, tenant))
    return fmt::format("left by its spare, and goes on in domain {}",
                       at_.tenants.find(tenant)->active.domain);
  if (fault.has_fallen) return "left by its spare, and goes on";
  return goes_on;
}

/// Where nobody knows the domain, only those of whom something became were there. Those who simply go on come
/// last: an account has an end.
std::vector<Touched> Tally::touched_by(const Fault& fault) const {
  std::vector<Touched> all;
  for (const std::string& tenant : fault.affected) {
    if (fault.culprit == tenant) continue;
    std::string words = became(fault, tenant);
    if (!fault.domain.empty() || words != goes_on) all.push_back({tenant, std::move(words)});
  }
  for (const auto& [tenant, pid] : fault.standbys) {
    if (fault.culprit == tenant || fault.affected.contains(tenant)) continue;
    const Tenant* const its = at_.tenants.find(tenant);
    const bool is_there = its != nullptr && (its->standby.pid == pid || its->active.pid == pid);
    all.push_back(
        {tenant, is_there ? "its standby was there, and goes on" : "its standby was there, and ended"});
  }
  std::ranges::stable_partition(all, [](const Touched& each) { return each.became != goes_on; });
  return all;
}

void Tally::count(const Fault& fault) {
  if (fault.is_parked) end_of_parking(fault.domain);
  PastFault told = fault.told;
  told.touched = touched_by(fault);
  note(fault.fault_class, outcome_of(fault), std::move(told));
}

void Tally::note(fault::FaultClass fault_class, FaultOutcome outcome, PastFault fault) {
  const PastFault& noted = counts_.note_fault(fault_class, outcome, std::move(fault));
  if (callbacks_.on_counted) callbacks_.on_counted(noted);
}

void Tally::count_decided() {
  std::erase_if(closed_, [this](const Fault& fault) {
    if (is_in_doubt(fault)) return false;
    count(fault);
    return true;
  });
  if (!closed_.empty() || !open_.empty()) return;
  finished_.clear();
  reports_.clear();
  std::erase_if(promoted_, [this](const auto& each) { return !at_.tenants.contains(each.first); });
  std::erase_if(promoting_, [this](const auto& each) { return !at_.tenants.contains(each); });
}

}  // namespace firebreak::agent
