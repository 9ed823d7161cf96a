// SPDX-License-Identifier: Apache-2.0
#include "agent/pairs/pairs.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace firebreak::agent {
namespace {

/// Nobody waits for it but the old active's end, and the word that the tenant is unprotected.
constexpr Milliseconds first_step_looks{100};

}  // namespace

void Pairs::happened(const Happening& happening, const Telling& first_told) {
  for (const auto& [name, tenant] : at_.tenants.all()) {
    promoter_.look_at(*tenant, at_.warm_standbys.is_warm(*tenant));
  }
  carry_out(promoter_.decide(happening), first_told);
}

void Pairs::advance(Tenant& tenant, pair::EventType event, const Telling& first_told) {
  const std::size_t index = promoter_.look_at(tenant, at_.warm_standbys.is_warm(tenant));
  carry_out(promoter_.decide(OfTenant{index, event}), first_told);
}

void Pairs::exited(Tenant* tenant, pid_t pid, std::string_view endangered, const Telling& first_told) {
  happened(take_out(tenant, pid, endangered), first_told);
}

/// The process is in no role any more.
Exited Pairs::take_out(Tenant* tenant, pid_t pid, std::string_view endangered) {
  Exited exited{.endangered = endangered};
  if (tenant == nullptr) return exited;
  const std::size_t index = at_.tenants.index_of(*tenant);
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

void Pairs::take_up(Tenant& tenant) {
  const std::size_t index = promoter_.look_at(tenant, false);
  carry_out(promoter_.decide(TakenUp{index, tenant.promoted_epoch()}));
}

void Pairs::carry_out(Decided decided, const Telling& first_told) {
  for (const Told& told : decided.effects.told) {
    if (told.what == Told::What::Phase) decided.tenants[told.tenant]->waiting_for.clear();
  }
  for (const Act& each : decided.effects.acts) act(*decided.tenants[each.tenant], each);
  for (Tenant* tenant : decided.tenants) look_for_first_step(*tenant);
  for (const Tenant* tenant : decided.tenants) at_.records.save(*tenant);
  if (first_told) first_told();
  for (const Told& told : decided.effects.told) tell(decided, told);
  if (!decided.promoted.empty()) at_.records.save_counts();
  promoter_.give_back(std::move(decided));
}

void Pairs::act(Tenant& tenant, const Act& act) {
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

void Pairs::start_deadline(Tenant& tenant, Milliseconds delay) {
  auto timer = at_.loop.after(delay, [this, name = tenant.name()] {
    Tenant* found = at_.tenants.find(name);
    if (found == nullptr || is_held_suspect(*found)) return;
    advance(*found, pair::EventType::DeadlinePassed);
    at_.records.save();
  });
  if (!timer) return spdlog::error("no timer for {}: {}", tenant.name(), timer.error().message);
  tenant.deadline = std::move(*timer);
}

void Pairs::tell(const Decided& decided, const Told& told) {
  Tenant& tenant = *decided.tenants[told.tenant];
  switch (told.what) {
    case Told::What::Action:
      return tell_action(tenant, decided, told);
    case Told::What::StoodBy:
      return tell_stood_by(tenant);
    case Told::What::Phase:
      at_.tally.moved_on(tenant.name(), told.before, told.after);
      break;
  }
  abi::Event event;
  event.what = abi::EventKind::Phase;
  event.tenant = tenant.name();
  event.domain = tenant.active.domain;
  event.epoch = told.epoch;
  event.text = fmt::format("{}: {} -> {}", pair::to_string(told.cause), pair::to_string(told.before),
                           pair::to_string(told.after));
  at_.teller.tell(std::move(event));
}

void Pairs::tell_action(Tenant& tenant, const Decided& decided, const Told& told) {
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
      at_.tally.promoted(tenant.name(), tenant.old_active.domain, fence_of(told.cause));
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
  at_.teller.tell(std::move(event));
}

void Pairs::stand_by(Tenant& tenant, const std::optional<Asker>& asker, const std::string& but) {
  abi::Event event;
  event.what = abi::EventKind::Ready;
  event.tenant = tenant.name();
  event.domain = tenant.standby.domain;
  event.pid = tenant.standby.pid;
  event.text = but;
  if (!but.empty()) spdlog::warn("standby {} of tenant {}: {}", event.pid, event.tenant, but);
  advance(tenant, pair::EventType::StandbyReady, [&] { at_.teller.tell(std::move(event)); });
  if (!asker) return at_.records.save();
  at_.server.handle(*asker, [this](Connection& connection) { at_.answers.give_once(connection, {}); });
}

/// The standby was needed before its server was known, and may be the active by now.
void Pairs::tell_stood_by(Tenant& tenant) {
  const auto warm = at_.warm_standbys.take(tenant);
  if (!warm) return;
  abi::Event event;
  event.what = abi::EventKind::Ready;
  event.tenant = tenant.name();
  event.domain = (tenant.active.pid == warm->pid ? tenant.active : tenant.standby).domain;
  event.pid = warm->pid;
  at_.teller.tell(std::move(event));
  if (!warm->asker) return;
  at_.server.handle(*warm->asker, [this](Connection& connection) { at_.answers.give_once(connection, {}); });
}

void Pairs::tell_protection(Tenant& tenant, bool has_standby) {
  abi::Event event;
  event.what = has_standby ? abi::EventKind::Protected : abi::EventKind::Unprotected;
  event.tenant = tenant.name();
  event.domain = has_standby ? tenant.standby.domain : "";
  event.pid = has_standby ? tenant.standby.pid : 0;
  event.text = "no standby";
  if (has_standby) {
    const Nanoseconds without =
        tenant.unprotected_since ? at_.clock.now() - *tenant.unprotected_since : Nanoseconds(0);
    event.text =
        fmt::format("had no standby for {} ms", std::chrono::duration_cast<Milliseconds>(without).count());
    tenant.unprotected_since.reset();
  } else if (!tenant.unprotected_since) {
    tenant.unprotected_since = at_.clock.now();
  }
  at_.teller.tell(std::move(event));
}

/// One that is dead and held only for its last kernel gives no all-clear.
bool Pairs::is_held_suspect(const Tenant& tenant) const {
  return tenant.pair.phase == pair::Phase::Suspecting && at_.processes.dying(tenant.active.pid) != nullptr;
}

/// A process that never says that it runs does so all the same once a step of its own counts.
void Pairs::look_for_first_step(Tenant& tenant) {
  if (tenant.pair.phase != pair::Phase::Promoting) return tenant.first_step.cancel();
  if (tenant.first_step) return;
  auto looks = at_.loop.every(first_step_looks, [this, name = tenant.name()] {
    Tenant* found = at_.tenants.find(name);
    if (found == nullptr || !found->has_begun()) return;
    at_.follower.follow_progress(*found);
    advance(*found, pair::EventType::Resumed);
    at_.records.save();
  });
  if (!looks) return spdlog::error("no timer for {}: {}", tenant.name(), looks.error().message);
  tenant.first_step = std::move(*looks);
}

Status Pairs::resumed(Connection& connection, const abi::Resumed& request) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("resumed");
  abi::Event event;
  event.what = abi::EventKind::Resumed;
  event.step = request.next_step;
  event.at_ns = tenant->page().resumed_at_ns.load(std::memory_order_relaxed);
  event.tenant = tenant->name();
  event.domain = tenant->active.domain;
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  advance(*tenant, pair::EventType::Resumed, [&] { at_.teller.tell(std::move(event)); });
  at_.follower.follow_progress(*tenant);
  return {};
}

Status Pairs::finish(Connection& connection) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("finish");
  abi::Event event;
  event.what = abi::EventKind::Finished;
  event.tenant = tenant->name();
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  event.step = tenant->committed();
  advance(*tenant, pair::EventType::ActiveFinished, [&] { at_.teller.tell(std::move(event)); });
  return {};
}

void Pairs::end(const Member& member, std::string_view why) {
  const Process* process = at_.processes.living(member.pid);
  if (process == nullptr) return;
  spdlog::info("ending process {} of {}: {}", member.pid, process->tenant(), why);
  at_.detectors.expect_exit(member.pid);
  if (auto sent = at_.kernel.send_signal(*process->pidfd(), SIGKILL); !sent) {
    spdlog::warn("process {} could not be ended: {}", member.pid, sent.error().message);
  }
}

}  // namespace firebreak::agent
