// SPDX-License-Identifier: Apache-2.0
/// What follows from an event for pairs, in a fixed order: all promotions, then signals and timers, then what
/// is kept, then what is told.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

/// Nobody waits for it but the old active's end, and the word that the tenant is unprotected.
constexpr Milliseconds first_step_looks{100};

}  // namespace

Decided Agent::promote(const Happening& happening) {
  for (auto& [name, tenant] : tenants_.all()) {
    promoter_.look_at(*tenant, warm_standbys_.is_warm(*tenant));
  }
  return promoter_.decide(happening);
}

Decided Agent::promote_if(Tenant& tenant, pair::EventType event) {
  const std::size_t index = promoter_.look_at(tenant, warm_standbys_.is_warm(tenant));
  return promoter_.decide(OfTenant{index, event});
}

/// It is in no role any more. `tenant`: its own, null where it has none; `endangered`: the domain that it may
/// take along, since it ended without a word and may have had work in flight.
Exited Agent::take_out(Tenant* tenant, pid_t pid, std::string_view endangered) {
  Exited exited{.endangered = endangered};
  if (tenant == nullptr) return exited;
  const std::size_t index = tenants_.index_of(*tenant);
  if (tenant->active.pid == pid) {
    tenant->active.pid = 0;
    exited.tenant = index;
    exited.has_left = tenant->active_has_left();
  } else if (tenant->standby.pid == pid) {
    tenant->standby = {};
    exited.tenant = index;
    exited.role = abi::Role::Standby;
  } else if (tenant->old_active.pid == pid) {
    tenant->old_active = {};
  }
  return exited;
}

void Agent::take_up(Tenant& tenant) {
  const std::size_t index = promoter_.look_at(tenant, false);
  carry_out(promoter_.decide(TakenUp{index, tenant.promoted_epoch()}));
}

void Agent::carry_out(Decided decided, const Telling& first_told) {
  for (const Told& told : decided.effects.told) {
    if (told.what == Told::What::Phase) decided.tenants[told.tenant]->waiting_for.clear();
  }
  for (const Act& each : decided.effects.acts) act(*decided.tenants[each.tenant], each);
  for (Tenant* tenant : decided.tenants) look_for_first_step(*tenant);
  for (const Tenant* tenant : decided.tenants) records_.save(*tenant);
  if (first_told) first_told();
  for (const Told& told : decided.effects.told) tell(decided, told);
  promoter_.give_back(std::move(decided));
}

void Agent::act(Tenant& tenant, const Act& act) {
  switch (act.type) {
    case pair::ActionType::StartDeadline:
      return start_deadline(tenant, Milliseconds(act.deadline_ms));
    case pair::ActionType::EndActive:
      return end(tenant.active, act.why);
    case pair::ActionType::EndStandby:
      return end(tenant.standby, act.why);
    case pair::ActionType::EndOldActive:
      return end(tenant.old_active, act.why);
    case pair::ActionType::DismissStandby:
      return tenant.dismiss_standby();
    case pair::ActionType::BeginEpoch:
      return tenant.begin_epoch(act.epoch);
    default:
      break;
  }
}

void Agent::start_deadline(Tenant& tenant, Milliseconds delay) {
  auto timer = loop_.after(delay, [this, name = tenant.name()] {
    Tenant* found = tenants_.find(name);
    if (found == nullptr || is_held_suspect(*found)) return;
    advance(*found, pair::EventType::DeadlinePassed);
    records_.save();
  });
  if (!timer) return spdlog::error("no timer for {}: {}", tenant.name(), timer.error().message);
  tenant.deadline = std::move(*timer);
}

void Agent::tell(const Decided& decided, const Told& told) {
  Tenant& tenant = *decided.tenants[told.tenant];
  switch (told.what) {
    case Told::What::Action:
      return tell_action(tenant, decided, told);
    case Told::What::StoodBy:
      return tell_stood_by(tenant);
    case Told::What::Phase:
      break;
  }
  abi::Event event;
  event.what = abi::EventKind::Phase;
  event.tenant = tenant.name();
  event.domain = tenant.active.domain;
  event.epoch = told.epoch;
  event.text = fmt::format("{}: {} -> {}", pair::to_string(told.cause), pair::to_string(told.before),
                           pair::to_string(told.after));
  teller_.tell(std::move(event));
}

void Agent::tell_action(Tenant& tenant, const Decided& decided, const Told& told) {
  abi::Event event;
  event.tenant = tenant.name();
  switch (told.action.type) {
    case pair::ActionType::Promote: {
      const auto& all = decided.effects.promotions;
      const auto promotion = std::ranges::find(all, told.tenant, &Promotion::tenant);
      const auto& promoted = decided.promoted[static_cast<std::size_t>(promotion - all.begin())];
      event.what = abi::EventKind::Promote;
      event.at_ns = promoted.at_ns;
      event.step = promoted.committed;
      event.pid = tenant.active.pid;
      event.epoch = told.action.epoch;
      event.domain = tenant.active.domain;
      break;
    }
    case pair::ActionType::BeginEpoch:
      event.what = abi::EventKind::BegunAnew;
      event.epoch = told.action.epoch;
      event.pid = tenant.active.pid;
      event.step = tenant.committed();
      break;
    case pair::ActionType::TellUnprotected:
      return tell_protection(tenant, false);
    case pair::ActionType::TellProtected:
      return tell_protection(tenant, true);
    case pair::ActionType::TellLost:
      event.what = abi::EventKind::Lost;
      event.text = told.action.reason;
      break;
    case pair::ActionType::TellWaiting:
      event.what = abi::EventKind::Waiting;
      event.text = tenant.waiting_for = told.action.reason;
      event.pid = tenant.active.pid;
      event.epoch = told.epoch;
      spdlog::warn("tenant {} waits: {}", tenant.name(), told.action.reason);
      break;
    default:
      return;
  }
  teller_.tell(std::move(event));
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
  if (!asker) return records_.save();
  server_.handle(*asker, [this](Connection& connection) { answers_.give_once(connection, {}); });
}

/// It was needed before its server was known, and may be the active by now.
void Agent::tell_stood_by(Tenant& tenant) {
  const auto warm = warm_standbys_.take(tenant);
  if (!warm) return;
  abi::Event event;
  event.what = abi::EventKind::Ready;
  event.tenant = tenant.name();
  event.domain = (tenant.active.pid == warm->pid ? tenant.active : tenant.standby).domain;
  event.pid = warm->pid;
  teller_.tell(std::move(event));
  if (!warm->asker) return;
  server_.handle(*warm->asker, [this](Connection& connection) { answers_.give_once(connection, {}); });
}

/// One that is dead and held only for its last kernel gives no all-clear.
bool Agent::is_held_suspect(const Tenant& tenant) const {
  return tenant.pair.phase == pair::Phase::Suspecting && processes_.dying(tenant.active.pid) != nullptr;
}

/// Who never says that it runs does so all the same once a step of its own counts.
void Agent::look_for_first_step(Tenant& tenant) {
  if (tenant.pair.phase != pair::Phase::Promoting) return tenant.first_step.cancel();
  if (tenant.first_step) return;
  auto looks = loop_.every(first_step_looks, [this, name = tenant.name()] {
    Tenant* found = tenants_.find(name);
    if (found == nullptr || !found->has_begun()) return;
    follow_progress(*found);
    advance(*found, pair::EventType::Resumed);
    records_.save();
  });
  if (!looks) return spdlog::error("no timer for {}: {}", tenant.name(), looks.error().message);
  tenant.first_step = std::move(*looks);
}

void Agent::end(const Member& member, std::string_view why) {
  const Process* process = processes_.living(member.pid);
  if (process == nullptr) return;
  spdlog::info("ending process {} of {}: {}", member.pid, process->tenant(), why);
  detectors_.expect_exit(member.pid);
  if (auto sent = kernel_.send_signal(process->pidfd(), SIGKILL); !sent) {
    spdlog::warn("process {} could not be ended: {}", member.pid, sent.error().message);
  }
}

}  // namespace firebreak::agent
