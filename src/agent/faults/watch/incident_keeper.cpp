// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/incident_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace firebreak::watch {
namespace {

/// Closing an incident a little late harms nobody; timers that are due at once would.
constexpr Nanoseconds shortest_wait = std::chrono::milliseconds(1);
/// Pause before a domain is asked for its clients again, where no answer has come.
constexpr Nanoseconds ask_again = std::chrono::milliseconds(100);

}  // namespace

IncidentKeeper::IncidentKeeper(os::EventLoop& loop, const Clock& clock, IncidentKeeperOptions options,
                               Tell tell)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      tell_(std::move(tell)),
      merger_({.window = options_.merge_window, .lists_clients = options_.ask_for_clients != nullptr}) {}

void IncidentKeeper::take(const fault::Fault& fault) {
  if (const fault::Incident* incident = merger_.take(fault); incident != nullptr && tell_) tell_(*incident);
  if (!closing_) wait_for_closing();
  ask_for_clients();
}

void IncidentKeeper::follow(const Target& target) {
  fault::WatchedProcess process;
  process.pid = target.pid;
  process.gpu = target.gpu;
  process.domain = target.domain;
  process.tenant = target.tenant;
  if (target.tenant) process.since = clock_.now();  // a tenant is adopted before it begins
  process.may_be_client = !target.said.empty();
  // Who faults as it begins is gone before MPS names it: it is judged where it was told to run.
  if (target.domain.empty() && target.is_told) process.domain = target.said;
  merger_.watch(process);
}

void IncidentKeeper::place(const Target& target) {
  tell(merger_.place(target.pid, target.domain, target.gpu));
}

void IncidentKeeper::note_client(const std::string& domain, std::optional<pid_t> client) {
  if (client) merger_.note_client(domain, *client, clock_.now());
  if (options_.ask_for_clients && !domain.empty()) options_.ask_for_clients(domain);
}

void IncidentKeeper::note_clients(const std::string& domain, Monotonic asked,
                                  const std::vector<pid_t>& pids) {
  clients_asked_.erase(domain);
  tell(merger_.note_clients(domain, asked, pids, clock_.now()));
}

void IncidentKeeper::set_going_on(const std::string& domain, bool goes_on) {
  merger_.set_going_on(domain, goes_on, clock_.now());
  wait_for_closing();
}

void IncidentKeeper::finish() {
  closing_.cancel();
  tell(merger_.finish());
}

void IncidentKeeper::tell(const std::vector<fault::Incident>& incidents) {
  if (!tell_) return;
  for (const fault::Incident& incident : incidents) tell_(incident);
}

/// Asks who else was there when it happened; the answer may change who is named.
void IncidentKeeper::ask_for_clients() {
  if (!options_.ask_for_clients) return;
  for (const std::string& domain : merger_.unlisted_domains()) {
    const auto asked = clients_asked_.find(domain);
    if (asked != clients_asked_.end() && clock_.now() - asked->second < ask_again) continue;
    clients_asked_[domain] = clock_.now();
    options_.ask_for_clients(domain);
  }
}

void IncidentKeeper::close_due() {
  closing_.cancel();
  tell(merger_.advance(clock_.now()));
  wait_for_closing();
}

void IncidentKeeper::wait_for_closing() {
  const auto next = merger_.next_closing();
  if (!next) return;
  auto timer = loop_.after(std::max(*next - clock_.now(), shortest_wait), [this] { close_due(); });
  if (!timer) return spdlog::error("incidents stay open: {}", to_string(timer.error()));
  closing_ = std::move(*timer);
}

}  // namespace firebreak::watch
