// SPDX-License-Identifier: Apache-2.0
/// Who is a client of a domain, by MPS's word: what a process says of itself keeps nobody there.
#include <algorithm>
#include <set>
#include <utility>

#include "agent/parking/parking.h"

namespace firebreak::agent {
namespace {

/// With every look at the clients: MPS lists one some 100 ms after it has opened the GPU, or much later where
/// its program takes its time. Later it is listed with everybody else.
constexpr int most_questions = 20;
/// Whoever has come to the GPU just before the fault is named by MPS within this time, or is nobody's client.
constexpr Milliseconds names_come_within{1'000};

}  // namespace

bool Parking::is_known_in(pid_t pid, const std::string& domain) const {
  const Process* const process = at_.processes.living(pid);
  return process != nullptr && process->is_known_in(domain);
}

bool Parking::may_be_in(pid_t pid, const std::string& domain) const {
  const Process* const process = at_.processes.living(pid);
  return process != nullptr && process->may_be_in(domain);
}

/// It may be a client already, and MPS has not named it.
bool Parking::is_unconfirmed(const InDomain& who, const Dumper& dumper) const {
  const bool has_come = dumper.has_gpu && (!dumper.has_spare || at_.spares.is_in(who.first, who.second));
  return (has_come || dumper.dump == Dump::Unheeded) && may_be_in(who.first, who.second) &&
         !is_known_in(who.first, who.second);
}

/// MPS is asked as soon as somebody can be a client, so that nobody has to wait for its answer who dumps.
void Parking::ask_for_the_unconfirmed() {
  std::set<std::string> domains;
  for (auto& [who, dumper] : dumpers_) {
    if (!is_unconfirmed(who, dumper) || dumper.asked >= most_questions) continue;
    ++dumper.asked;
    domains.insert(who.second);
  }
  for (const std::string& domain : domains) at_.domains.look_for_clients(domain);
}

bool Parking::is_there(const InDomain& who, const Dumper& dumper) const {
  // Nobody waits for the dump of who writes something else.
  const bool is_out = dumper.path.empty() || dumper.has_fallen || dumper.dump == Dump::Dropped;
  if (is_out || !is_known_in(who.first, who.second)) return false;
  return !dumper.has_spare || dumper.has_begun() || at_.spares.is_in(who.first, who.second);
}

bool Parking::is_client(const InDomain& who, const Dumper& dumper) const {
  const bool does_not_dump = dumper.path.empty() || dumper.dump == Dump::Dropped;
  return is_known_in(who.first, who.second) && (does_not_dump || is_there(who, dumper));
}

/// Returns the clients without the parking client.
std::size_t Parking::clients_of(const std::string& domain) const {
  return static_cast<std::size_t>(std::ranges::count_if(dumpers_, [&](const auto& each) {
    return each.first.second == domain && is_client(each.first, each.second);
  }));
}

/// Who began to work a moment before the fault is not taken for one that is not there.
bool Parking::awaits_names(const std::string& domain) {
  Place& place = places_[domain];
  if (at_.clock.now() - place.leaving_since >= names_come_within) return false;
  const bool is_any = std::ranges::any_of(dumpers_, [&](const auto& each) {
    return each.first.second == domain && !place.state.is_culprit(each.first.first) &&
           is_unconfirmed(each.first, each.second);
  });
  if (is_any && !std::exchange(place.is_asked_who_works, true)) at_.domains.look_for_clients(domain);
  return is_any;
}

/// Tenants' actives, and clients that are nobody's tenants: they can go nowhere else. Who is to have a spare
/// and has not come to CUDA works nowhere, and a domain that is parked takes nobody.
std::vector<pid_t> Parking::who_works_in(const std::string& domain) const {
  std::vector<pid_t> all;
  for (const auto& [name, tenant] : at_.tenants.all()) {
    const pid_t active = tenant->active.pid;
    if (active == 0 || tenant->active.domain != domain || !is_known_in(active, domain)) continue;
    const auto its = dumpers_.find({active, domain});
    if (its != dumpers_.end() && its->second.path.empty())
      continue;  // it is lost, however long it is waited for
    const bool has_begun = its != dumpers_.end() && its->second.has_begun();
    if (has_begun || at_.spares.may_work_in(active, domain)) all.push_back(active);
  }
  for (const auto& [who, dumper] : dumpers_) {
    const bool is_stranger = who.second == domain && at_.processes.tenant_of(who.first).empty();
    if (is_stranger && is_there(who, dumper)) all.push_back(who.first);
  }
  return all;
}

}  // namespace firebreak::agent
