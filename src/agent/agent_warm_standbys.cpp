// SPDX-License-Identifier: Apache-2.0
/// Standbys that have warmed up, and are ready once the MPS server is known that has their context: the next
/// agent finds out that a server ended while there was none only of those that this one has written down.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

/// Programs before 0.7 wait 5 s for an answer.
constexpr Milliseconds longest_patience_of_old{3'000};

/// Nobody needs it yet.
bool may_wait(pair::Phase phase) { return phase == pair::Phase::Empty || phase == pair::Phase::Serving; }

}  // namespace

bool Agent::knows_server_of(const std::string& domain) const {
  return std::ranges::any_of(
      servers_, [&](const KeptServer& each) { return each.domain == domain && !has_ended(each); });
}

/// Its domain's server has started by now, or will.
void Agent::on_gpu_opened(pid_t pid) {
  holder_.look(pid);
  const Process* process = processes_.living(pid);
  if (process != nullptr && !knows_server_of(process->domain())) domains_.refresh_servers();
}

/// Its server is there already, so MPS names it at the first question: the patience is for one that does not
/// answer, and for a standby that is no client of MPS. Whoever has to take over now finds out itself.
void Agent::warmed_up(Tenant& tenant, std::optional<Asker> asker) {
  warm_standbys_.erase(tenant.name());
  domains_.refresh_servers();
  if (!may_wait(tenant.pair.phase) || knows_server_of(tenant.standby.domain))
    return stand_by(tenant, asker, "");
  const Connection* connection = server_.find(tenant.standby.connection);
  const bool is_old = connection != nullptr && !connection->numbers();
  const Milliseconds patience =
      is_old ? std::min(options_.server_patience, longest_patience_of_old) : options_.server_patience;
  WarmStandby warm{tenant.standby.pid, asker};
  warm.patience = loop_.after_or_now(patience, [this, name = tenant.name()] {
    stand_by_warm(name,
                  "no MPS server of its domain is known: one that ends while there is no agent would not "
                  "be missed");
  });
  warm_standbys_.insert_or_assign(tenant.name(), std::move(warm));
}

/// `but`: what is not as it should be; empty: all is.
void Agent::stand_by(Tenant& tenant, const std::optional<Asker>& asker, const std::string& but) {
  abi::Event event;
  event.what = abi::EventKind::Ready;
  event.tenant = tenant.name();
  event.domain = tenant.standby.domain;
  event.pid = tenant.standby.pid;
  event.text = but;
  if (!but.empty()) spdlog::warn("standby {} of tenant {}: {}", event.pid, event.tenant, but);
  advance(tenant, pair::EventType::StandbyReady, [&] { teller_.tell(std::move(event)); });
  if (!asker) return save();
  server_.handle(*asker, [this](Connection& connection) { answer_once(connection, {}); });
}

/// Null: there is none. One that has gone or has come back since has said so anew, or will.
const Agent::WarmStandby* Agent::warm_standby_of(const Tenant& tenant) const {
  const auto found = warm_standbys_.find(tenant.name());
  if (found == warm_standbys_.end()) return nullptr;
  const WarmStandby& warm = found->second;
  const bool is_there = tenant.standby.pid == warm.pid && tenant.standby.connection != 0 &&
                        tenant.pair.standby == pair::Standby::Joined &&
                        (!warm.asker || warm.asker->connection == tenant.standby.connection);
  return is_there ? &warm : nullptr;
}

void Agent::stand_by_warm(const std::string& tenant, const std::string& but) {
  Tenant* found = tenants_.find(tenant);
  const bool is_there = found != nullptr && warm_standby_of(*found) != nullptr;
  const auto warm = warm_standbys_.extract(tenant);
  if (is_there) stand_by(*found, warm.mapped().asker, but);
}

/// It was needed before its server was known, and may be the active by now.
void Agent::tell_stood_by(Tenant& tenant) {
  const auto warm = warm_standbys_.extract(tenant.name());
  if (warm.empty()) return;
  const WarmStandby& its = warm.mapped();
  abi::Event event;
  event.what = abi::EventKind::Ready;
  event.tenant = tenant.name();
  event.domain = (tenant.active.pid == its.pid ? tenant.active : tenant.standby).domain;
  event.pid = its.pid;
  teller_.tell(std::move(event));
  if (!its.asker) return;
  server_.handle(*its.asker, [this](Connection& connection) { answer_once(connection, {}); });
}

void Agent::let_stand_by_in(const std::string& domain) {
  std::vector<std::string> theirs;
  for (const auto& [name, warm] : warm_standbys_) {
    Tenant* found = tenants_.find(name);
    if (found == nullptr || found->standby.domain == domain) theirs.push_back(name);
  }
  for (const std::string& name : theirs) stand_by_warm(name, "");
}

}  // namespace firebreak::agent
