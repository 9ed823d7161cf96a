// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/turn_keeper.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ground/os/memory.h"
#include "shared/abi/shared_page.h"

namespace firebreak::agent {
namespace {

bool can_compute(const Tenant& tenant) {
  const pair::Phase phase = tenant.pair.phase;
  return tenant.active.pid != 0 && (phase == pair::Phase::Serving || phase == pair::Phase::Suspecting ||
                                    phase == pair::Phase::Promoting);
}

turns::Class class_of(const Tenant& tenant) {
  return tenant.page().turn.is_live.load(std::memory_order_relaxed) == 1 ? turns::Class::Live
                                                                         : turns::Class::Batch;
}

/// The tenant's own words.
turns::Claim claim_of(const Tenant& tenant, Monotonic now) {
  const abi::TurnPlace& said = tenant.page().turn;
  turns::Claim claim{tenant.name(), class_of(tenant), said.units.load(std::memory_order_acquire), {}, {}};
  const std::int64_t deadline_ns = said.deadline_ns.load(std::memory_order_relaxed);
  if (deadline_ns != 0) claim.deadline = from_ns(deadline_ns);
  claim.unit_cost = Nanoseconds(said.unit_ns.load(std::memory_order_relaxed));
  claim.was_held = abi::HoldWord::left_ms(said.hold.load(std::memory_order_relaxed), to_ns(now)) > 0;
  return claim;
}

void let_go(Tenant& tenant) {
  auto& word = tenant.page().turn.hold;
  if (word.exchange(0, std::memory_order_release) != 0) os::futex_wake(word);
}

}  // namespace

const char* to_string(TurnReport::State state) {
  switch (state) {
    case TurnReport::State::NeverAsks:
      return "never asks";
    case TurnReport::State::Idle:
      return "idle";
    case TurnReport::State::Goes:
      return "goes";
    case TurnReport::State::Waits:
      return "waits";
  }
  return "?";
}

void TurnKeeper::begin() {
  is_first_look_ = true;
  if (at_.options.turns->is_free()) {
    for (const auto& [name, tenant] : at_.tenants.all()) let_go(*tenant);
  }
  look();
}

/// Who is no client of that domain by MPS's word takes nobody's time there.
bool TurnKeeper::may_compute(const Tenant& tenant) const {
  const Process* const process = at_.processes.living(tenant.active.pid);
  return can_compute(tenant) && process != nullptr && process->is_known_in(tenant.active.domain);
}

void TurnKeeper::look() {
  if (at_.options.turns->is_free()) return;
  const Monotonic now = at_.clock.now();
  std::map<std::string, std::string> gpu_of_domain;
  for (const mps::DomainReport& domain : at_.domains.reports()) gpu_of_domain[domain.name] = domain.gpu;
  std::map<std::string, std::vector<turns::Claim>> claims;
  for (auto& [gpu, state] : gpus_) claims[gpu];
  for (const auto& [name, tenant] : at_.tenants.all()) {
    turns::Claim claim = claim_of(*tenant, now);
    claim.was_held &= is_first_look_;
    if (const auto user = at_.credentials.owner_of(name)) claim.user = std::to_string(*user);
    if (may_compute(*tenant) && claim.units > 0)
      claims[gpu_of_domain[tenant->active.domain]].push_back(claim);
  }
  is_first_look_ = false;
  const turns::Limits limits{at_.options.turn_max};
  std::optional<Nanoseconds> again;
  std::set<std::string> waits;
  for (const auto& [gpu, its] : claims) {
    turns::Round& state = gpus_[gpu];
    const auto its_next = turns::advance(*at_.options.turns, limits, state, its, now);
    if (its_next) again = std::min(again.value_or(*its_next), *its_next);
    for (const auto& [name, since] : state.waiting()) waits.insert(name);
  }
  // Who waits first: nobody else begins a step before.
  const std::uint32_t until = abi::HoldWord::until(
      to_ns(now), std::chrono::duration_cast<Milliseconds>(at_.options.turn_max).count());
  for (const auto& [name, tenant] : at_.tenants.all()) {
    if (waits.contains(name)) tenant->page().turn.hold.store(until, std::memory_order_release);
  }
  for (const auto& [name, tenant] : at_.tenants.all()) {
    if (!waits.contains(name)) let_go(*tenant);
  }
  next_look_.cancel();
  if (again) next_look_ = at_.loop.after_or_now(*again, [this] { look(); });
}

TurnReport TurnKeeper::report_of(const Tenant& tenant) const {
  using State = TurnReport::State;
  const abi::TurnPlace& said = tenant.page().turn;
  for (const auto& [gpu, state] : gpus_) {
    const auto all = state.waiting();
    const auto waiting = all.find(tenant.name());
    if (waiting != all.end()) return {State::Waits, class_of(tenant), at_.clock.now() - waiting->second};
  }
  const bool asks = said.taken.load(std::memory_order_relaxed) != 0;
  const bool wants = said.units.load(std::memory_order_relaxed) != 0 && may_compute(tenant);
  return {!asks ? State::NeverAsks : wants ? State::Goes : State::Idle, class_of(tenant), Nanoseconds(0)};
}

}  // namespace firebreak::agent
