// SPDX-License-Identifier: Apache-2.0
/// The part of a keeper that handles faults: its domain takes nobody until all whom one has hit are gone, and
/// with them the server that had it.
#include <signal.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "agent/domains/mps/domain_keeper.h"

namespace firebreak::mps {

void DomainKeeper::note_fault() {
  {
    const std::lock_guard lock(mutex_);
    // A domain that restarts has no clients that a fault could have hit.
    if (report_.state != DomainState::Restarting) report_.state = DomainState::Draining;
  }
  loop_->post([this] { begin_drain(); });
}

void DomainKeeper::look_for_faults() {
  loop_->post([this] { ask_for_faults_from(Milliseconds(0)); });
}

/// Later each time, until a fault that was just under way has passed.
void DomainKeeper::ask_for_faults_from(Milliseconds passed) {
  ask_for_faults();
  if (passed == Milliseconds(0)) replace_unwatched();
  if (!takes_clients() || passed >= options_.fault_lasts) return next_fault_look_.cancel();
  const Milliseconds next = std::max(passed * 2, options_.second_fault_look);
  next_fault_look_ = loop_->after_or_now(next - passed, [this, next] { ask_for_faults_from(next); });
}

void DomainKeeper::ask_for_faults() {
  if (!takes_clients() || !has_fault()) return;
  set_state(DomainState::Draining);
  callbacks_.on_clients_lost();
  begin_drain();
}

bool DomainKeeper::has_fault() {
  const auto domain = this->domain();
  const auto servers = domain ? domain->server_pids() : Result<std::vector<pid_t>>();
  return domain && servers && std::ranges::any_of(*servers, [&](pid_t server) {
           return domain->server_state(server) == ServerState::Fault;
         });
}

void DomainKeeper::begin_drain() {
  had_fault_ = true;
  if (report().state != DomainState::Draining) return;
  served_since_.reset();
  const bool is_first = !next_drain_look_;
  // Late words of a fault are none of a new one.
  const Milliseconds until_look = has_fallen_ ? options_.fall_lasts : options_.fault_lasts;
  next_drain_look_ = loop_->after_or_now(until_look, [this] { look_whether_drained(); });
  drains_after_fault_ = true;
  if (is_first) tell("had a fault, and takes nobody until it has drained");
}

void DomainKeeper::note_fall() {
  loop_->post([this] {
    if (report().state != DomainState::Draining) return;
    has_fallen_ = true;
    begin_drain();
  });
}

void DomainKeeper::look_whether_drained() {
  next_drain_look_.cancel();
  if (report().state != DomainState::Draining) return;
  auto there = who_is_there();
  if (!there || there->of_dead.empty()) only_dead_since_.reset();
  kill_servers_of_the_silent(there.has_value());
  const bool are_idle = options_.idle_clients_asked_every > Milliseconds(0);
  if (are_idle && drains_after_fault_ && (!there || there->hit)) return renew_under_idle_clients();
  if (!there || there->hit || !are_served(*there) || !let_go_of_dead(*there))
    return look_again_whether_drained();
  drain_looks_.reset();
  served_since_.reset();
  const auto why = "has drained";
  if (!there->newcomers && !there->idle.empty()) return renew(there->idle, why);
  replace(there->idle, why);
}

void DomainKeeper::look_again_whether_drained() {
  next_drain_look_ =
      loop_->after_or_now(drain_looks_.after_failure(Nanoseconds(0)), [this] { look_whether_drained(); });
}

/// Nothing: MPS does not answer.
std::optional<DomainKeeper::Occupancy> DomainKeeper::who_is_there() {
  const auto domain = this->domain();
  const auto servers = domain ? domain->server_pids() : Result<std::vector<pid_t>>();
  if (!domain || !servers) return std::nullopt;
  Occupancy there;
  for (const pid_t server : *servers) {
    const auto state = domain->server_state(server);
    const auto clients = domain->clients(server);
    if (!clients && clients.error().code == ErrorCode::NotFound) continue;
    if (!clients || !state) return std::nullopt;
    // One that is only coming up is nobody's yet.
    if (clients->empty() && *state != ServerState::Other) there.idle.push_back(server);
    if (clients->empty()) continue;
    if (!domain->has_living(*clients)) {
      there.of_dead.push_back(server);
      continue;
    }
    (*state == ServerState::Active ? there.newcomers : there.hit) = true;
  }
  return there;
}

/// Kills servers only of a daemon that is known as silent, and for all of that time: one answer may be late.
/// Where the daemon answers, a server in FAULT may have clients that work: after a texture that is none they
/// did (H100).
void DomainKeeper::kill_servers_of_the_silent(bool has_answered) {
  if (has_answered || !drains_after_fault_ || !report().silent) return silent_since_.reset();
  if (!silent_since_) silent_since_ = clock_.now();
  const Nanoseconds silent_for = clock_.now() - *silent_since_;
  if (silent_for < options_.silence_is_waited_for) return;
  silent_since_.reset();  // one that does not go is killed again
  for (const auto& [pid, server] : servers_) {
    tell(fmt::format("its MPS server {} is killed: after a fault its daemon has not answered for {} ms", pid,
                     std::chrono::duration_cast<Milliseconds>(silent_for).count()));
    (void)kernel_.send_signal(*server.process, SIGKILL);
  }
}

/// Whoever has come since the fault, on his way or before he could be told that nobody is to come: once he
/// has been there for a while, his server has proved itself.
bool DomainKeeper::are_served(const Occupancy& there) {
  if (!there.newcomers) return true;
  if (!served_since_) served_since_ = clock_.now();
  return clock_.now() - *served_since_ >= options_.newcomers_prove;
}

/// MPS may name a dead client for good. While the driver still takes it apart, its server is left alone.
bool DomainKeeper::let_go_of_dead(Occupancy& there) {
  if (there.of_dead.empty()) return true;
  if (!only_dead_since_) only_dead_since_ = clock_.now();
  if (clock_.now() - *only_dead_since_ < options_.dead_are_waited_for) return false;
  only_dead_since_.reset();
  tell(fmt::format("MPS server {} names nobody but the dead as its clients", fmt::join(there.of_dead, ", ")));
  there.idle.insert(there.idle.end(), there.of_dead.begin(), there.of_dead.end());
  return true;
}

/// A server whose only client had a fault calls itself ACTIVE, and its next client fails
/// (docs/how/domains.md). It cannot be told from one in order but by a client, and a client of our own would
/// be the one that fails, with a fault on the GPU that everybody is told of. Without clients its end harms
/// nobody.
void DomainKeeper::replace(const std::vector<pid_t>& servers, const std::string& why) {
  std::optional<uid_t> user;
  if (!servers.empty()) {
    const auto known = servers_.find(servers.back());
    user = known == servers_.end() ? user_of(servers.back()) : known->second.user;
  }
  if (!end_servers(servers, why)) return;
  if (!user) {
    set_state(DomainState::Serving);
    return tell(why + ", and serves again");
  }
  set_state(DomainState::Restarting);
  tell(fmt::format("{}; its MPS server {} is replaced, since a fault may have spoiled it", why,
                   fmt::join(servers, ", ")));
  start_server(*user);
}

/// A process that outlives its part in the fault was a client of the server that goes. Where it comes again
/// the daemon ends, and with it everybody who has come meanwhile (H100, 15 of 15: docs/how/domains.md).
/// Nobody is there now, so the daemon goes along.
void DomainKeeper::renew(const std::vector<pid_t>& servers, const std::string& why) {
  if (!end_servers(servers, why)) return;
  set_state(DomainState::Restarting);
  tell(fmt::format("{}; its MPS server {} is replaced, since a fault may have spoiled it, and its daemon",
                   why, fmt::join(servers, ", ")));
  renew_daemon();
}

/// Whoever is a client of a server in FAULT has lost nothing but a driver that did nothing, and stays.
void DomainKeeper::renew_under_idle_clients() {
  for (const auto& [pid, server] : servers_) (void)kernel_.send_signal(*server.process, SIGKILL);
  {
    const std::lock_guard lock(mutex_);
    report_.server_restarts += static_cast<std::uint32_t>(servers_.size());
  }
  set_state(DomainState::Restarting);
  tell("its clients do no work, and are not waited for: its MPS servers and its daemon are replaced");
  renew_daemon();
}

void DomainKeeper::renew_daemon() {
  const std::shared_ptr<Domain> old = let_go_of_daemon();
  if (old) static_cast<void>(old->quit(options_.domain.quit_timeout));
  start_daemon();
}

/// False: one does not go, and is asked again.
bool DomainKeeper::end_servers(const std::vector<pid_t>& servers, const std::string& why) {
  const auto domain = this->domain();
  for (const pid_t pid : servers) {
    if (const Status ended = domain ? domain->end_server(pid) : Status{}; !ended) {
      tell(fmt::format("{}, but its MPS server {} does not go: {}", why, pid, to_string(ended.error())));
      look_again_whether_drained();
      return false;
    }
    servers_.erase(pid);
    const std::lock_guard lock(mutex_);
    std::erase(report_.servers, pid);
    note_end(pid);
    ++report_.server_restarts;
  }
  return true;
}

/// Servers do not say what befell them while nobody looked.
void DomainKeeper::replace_unwatched() {
  if (!takes_clients()) return;
  const auto there = who_is_there();
  if (!there || there->idle.empty()) return;
  set_state(DomainState::Draining);
  drains_after_fault_ = false;
  replace(there->idle, "was not watched for a while");
}

}  // namespace firebreak::mps
