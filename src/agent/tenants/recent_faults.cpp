// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/recent_faults.h"

#include <algorithm>
#include <utility>

#include "agent/tenants/pair/pair.h"
#include "agent/tenants/process.h"

namespace firebreak::agent {
namespace {

/// A domain's fault that is known from elsewhere, for Xids that name one of its clients: they come up to
/// 153 ms after UVM's event.
constexpr Milliseconds confirms_for{1000};
/// Largest number within one second: the driver prints no more of them.
constexpr std::size_t most_unplaced = 64;
/// The driver takes a client apart once nobody has its descriptors any more: some have them for 30 s
/// (--longest-hold-s).
constexpr Milliseconds named_for{60'000};
constexpr std::size_t most_ended = 4'096;

}  // namespace

void RecentFaults::note(const std::string& domain, Confirms confirms) {
  last_[domain] = clock_.now();
  if (confirms == Confirms::All) last_sure_[domain] = clock_.now();
  if (confirms == Confirms::MemoryFaults) last_memory_[domain] = clock_.now();
}

void RecentFaults::take_memory_fault_back(const std::string& domain) { last_memory_.erase(domain); }

void RecentFaults::forget(const std::string& domain) {
  last_.erase(domain);
  last_sure_.erase(domain);
  last_memory_.erase(domain);
}

bool RecentFaults::is_recent(const Times& times, std::string_view domain) const {
  const auto seen = times.find(domain);
  return seen != times.end() && clock_.now() - seen->second < confirms_for;
}

bool RecentFaults::is_confirmed(std::string_view domain, fault::FaultClass fault_class) const {
  using enum fault::FaultClass;
  const bool is_of_memory = fault_class == MmuReplayable || fault_class == MmuNonReplayable;
  return is_recent(last_sure_, domain) || (is_of_memory && is_recent(last_memory_, domain));
}

/// A fault lasts as long as a pair would wait for its last word.
Nanoseconds RecentFaults::lasts(std::string_view domain) const {
  const auto last = last_.find(domain);
  if (last == last_.end()) return Nanoseconds(0);
  return last->second + Milliseconds(pair::suspicion_ms) - clock_.now();
}

bool RecentFaults::put_off(const fault::Fault& fault) {
  if (fault.source != fault::FaultSource::Xid || !fault.pid) return false;
  std::erase_if(unplaced_,
                [&](const Unplaced& each) { return clock_.now() - each.fault.when > confirms_for; });
  std::string start_time = start_time_of(kernel_, *fault.pid);
  if (start_time.empty() || unplaced_.size() >= most_unplaced) return false;
  unplaced_.push_back({fault, std::move(start_time)});
  return true;
}

std::vector<fault::Fault> RecentFaults::take_of_server(pid_t server) {
  const std::string start_time = start_time_of(kernel_, server);
  std::vector<fault::Fault> its;
  std::erase_if(unplaced_, [&](const Unplaced& each) {
    if (each.fault.pid != server || each.start_time != start_time) return false;
    if (clock_.now() - each.fault.when <= confirms_for) its.push_back(each.fault);
    return true;
  });
  return its;
}

void RecentFaults::note_end(pid_t pid, const std::string& domain, uid_t user) {
  std::erase_if(ended_, [&](const auto& each) { return clock_.now() - each.second.when > named_for; });
  ended_[pid] = {domain, clock_.now(), user, start_time_of(kernel_, pid)};
  if (ended_.size() > most_ended) make_room();
}

/// Whoever ends many processes takes the room of none that is another's.
void RecentFaults::make_room() {
  std::map<uid_t, std::size_t> counts;
  for (const auto& [pid, ended] : ended_) ++counts[ended.user];
  const uid_t user =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  ended_.erase(std::ranges::min_element(ended_, {}, [user](const auto& each) {
    return std::pair(each.second.user != user, each.second.when);
  }));
}

std::string RecentFaults::domain_of_ended(pid_t pid) const {
  const auto ended = ended_.find(pid);
  if (ended == ended_.end() || clock_.now() - ended->second.when > named_for) return {};
  const std::string now = start_time_of(kernel_, pid);
  const bool is_another = !now.empty() && now != ended->second.start_time;
  return is_another ? std::string() : ended->second.domain;
}

}  // namespace firebreak::agent
