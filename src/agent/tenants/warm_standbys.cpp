// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/warm_standbys.h"

#include <algorithm>
#include <utility>

#include "agent/tenants/process.h"
#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

/// Programs before 0.7 wait 5 s for an answer.
constexpr Milliseconds longest_patience_of_old{3'000};

/// Nobody needs it yet.
bool may_wait(pair::Phase phase) { return phase == pair::Phase::Empty || phase == pair::Phase::Serving; }

}  // namespace

/// Its server is there already, so MPS names it at the first question: the patience is for one that does not
/// answer, and for a standby that is no client of MPS. Whoever has to take over now finds out itself.
void WarmStandbys::warmed_up(Tenant& tenant, std::optional<Asker> asker) {
  waiting_.erase(tenant.name());
  at_.domains.refresh_servers();
  if (!may_wait(tenant.pair.phase) || knows_server_of(tenant.standby.domain))
    return stand_by_(tenant, asker, "");
  const Connection* connection = at_.server.find(tenant.standby.connection);
  const bool is_old = connection != nullptr && !connection->numbers();
  Waiting waiting{{tenant.standby.pid, asker}};
  waiting.patience = at_.loop.after_or_now(
      is_old ? std::min(patience_, longest_patience_of_old) : patience_, [this, name = tenant.name()] {
        stand_by(name,
                 "no MPS server of its domain is known: one that ends while there is no agent would not "
                 "be missed");
      });
  waiting_.insert_or_assign(tenant.name(), std::move(waiting));
}

/// Null: there is none. One that has gone or has come back since has said so anew, or will.
const WarmStandby* WarmStandbys::find(const Tenant& tenant) const {
  const auto found = waiting_.find(tenant.name());
  if (found == waiting_.end()) return nullptr;
  const WarmStandby& warm = found->second.standby;
  const bool is_there = tenant.standby.pid == warm.pid && tenant.standby.connection != 0 &&
                        tenant.pair.standby == pair::Standby::Joined &&
                        (!warm.asker || warm.asker->connection == tenant.standby.connection);
  return is_there ? &warm : nullptr;
}

void WarmStandbys::stand_by(const std::string& tenant, const std::string& but) {
  Tenant* found = at_.tenants.find(tenant);
  const bool is_there = found != nullptr && is_warm(*found);
  const auto waiting = waiting_.extract(tenant);
  if (is_there) stand_by_(*found, waiting.mapped().standby.asker, but);
}

std::optional<WarmStandby> WarmStandbys::take(const Tenant& tenant) {
  const auto waiting = waiting_.extract(tenant.name());
  if (waiting.empty()) return std::nullopt;
  return waiting.mapped().standby;
}

void WarmStandbys::let_stand_by_in(const std::string& domain) {
  std::vector<std::string> theirs;
  for (const auto& [name, waiting] : waiting_) {
    const Tenant* found = at_.tenants.find(name);
    if (found == nullptr || found->standby.domain == domain) theirs.push_back(name);
  }
  for (const std::string& name : theirs) stand_by(name, "");
}

// --- MPS servers

bool WarmStandbys::add_server(const std::string& domain, pid_t pid) {
  KeptServer server{domain, pid, start_time_of(at_.kernel, pid)};
  if (std::ranges::count(servers_, server) > 0) return false;
  std::erase_if(servers_, [&](const KeptServer& each) { return each.domain == domain && has_ended(each); });
  servers_.push_back(std::move(server));
  return true;
}

bool WarmStandbys::knows_server_of(const std::string& domain) const {
  return std::ranges::any_of(
      servers_, [&](const KeptServer& each) { return each.domain == domain && !has_ended(each); });
}

void WarmStandbys::forget_ended_servers() {
  std::erase_if(servers_, [this](const KeptServer& each) { return has_ended(each); });
}

bool WarmStandbys::has_ended(const KeptServer& server) const {
  const auto stat = at_.kernel.read_file(os::proc_folder(server.pid) + "/stat");
  if (!stat) return stat.error().code != ErrorCode::Timeout;
  return !os::is_alive(*stat) || os::start_time(*stat) != server.start_time;
}

}  // namespace firebreak::agent
