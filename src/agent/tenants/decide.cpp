// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/decide.h"

namespace firebreak::agent {
namespace {

/// Largest number of steps of one pair at an event: of its active, which may have finished as well, of a
/// standby that stands by because of that, and of one that is given up.
constexpr std::size_t most_steps = 4;
constexpr std::size_t most_told_of_a_step = pair::Actions::most + 2;

/// Nobody needs a standby yet, so that it can wait until its server is known.
bool may_wait(pair::Phase phase) { return phase == pair::Phase::Empty || phase == pair::Phase::Serving; }

std::string_view why(pair::ActionType end) {
  switch (end) {
    case pair::ActionType::EndActive:
      return "its context is gone";
    case pair::ActionType::EndStandby:
      return "it was not ready in time";
    case pair::ActionType::EndOldActive:
      return "it is fenced";
    default:
      return {};
  }
}

class Decision {
 public:
  Decision(std::vector<TenantFacts>& tenants, Effects& effects) : tenants_(tenants), effects_(effects) {}

  void operator()(const FaultSeen& fault) {
    advance_actives(fault.domain, fault.means);
    if (fault.ends_clients) give_up_standbys(fault.domain, "its MPS domain had a fault");
  }
  void operator()(const DangerSeen& danger) { advance_actives(danger.domain, pair::EventType::DangerSeen); }
  void operator()(const ClientsLost& lost) {
    advance_actives(lost.domain, pair::EventType::ContextLost);
    give_up_standbys(lost.domain, "its context is gone");
  }
  void operator()(const Exited& exited) {
    if (exited.tenant != Exited::nobody && exited.role == abi::Role::Active) {
      if (exited.has_left) advance(exited.tenant, pair::EventType::ActiveFinished);
      advance(exited.tenant, pair::EventType::ActiveExited);
    } else if (exited.tenant != Exited::nobody) {
      advance(exited.tenant, pair::EventType::StandbyExited);
    }
    if (!exited.endangered.empty()) advance_actives(exited.endangered, pair::EventType::DangerSeen);
  }
  void operator()(const OfTenant& event) { advance(event.tenant, event.event); }
  void operator()(const TakenUp& taken_up) {
    for (const pair::Action& action : pair::resume(tenants_[taken_up.tenant].pair).actions) {
      const bool is_done =
          action.type == pair::ActionType::Promote && taken_up.promoted_epoch == action.epoch;
      if (!is_done) take(taken_up.tenant, action, {});
    }
  }

 private:
  /// The pairs whose actives are in that domain; empty: in any.
  void advance_actives(std::string_view domain, pair::EventType event) {
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      const Half& active = tenants_[i].active;
      if (active.is_there && (domain.empty() || active.domain == domain)) advance(i, event);
    }
  }

  /// A standby sleeps, and would find out only when it is to take over that its context is gone.
  void give_up_standbys(std::string_view domain, std::string_view because) {
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      const Half& standby = tenants_[i].standby;
      if (!standby.is_there || standby.domain != domain) continue;
      effects_.acts.push_back({i, pair::ActionType::EndStandby, 0, 0, because});
      advance(i, pair::EventType::StandbyExited);
    }
  }

  void advance(std::size_t tenant, pair::EventType event) {
    TenantFacts& facts = tenants_[tenant];
    const pair::Phase before = facts.pair.phase;
    const pair::Step step = pair::advance(facts.pair, event);
    facts.pair = step.state;
    for (const pair::Action& action : step.actions) take(tenant, action, event);
    if (before == facts.pair.phase) return;
    effects_.told.push_back(
        {Told::What::Phase, tenant, {}, facts.pair.epoch, event, before, facts.pair.phase});
    // Whoever has to take over now finds out itself whether its server is there.
    if (!facts.standby_is_warm || may_wait(facts.pair.phase)) return;
    facts.standby_is_warm = false;
    effects_.told.push_back({Told::What::StoodBy, tenant, {}, facts.pair.epoch});
    advance(tenant, pair::EventType::StandbyReady);
  }

  void take(std::size_t tenant, const pair::Action& action, pair::EventType cause) {
    using enum pair::ActionType;
    const Act act = {tenant, action.type, action.deadline_ms, action.epoch, why(action.type)};
    switch (action.type) {
      case Promote:
        effects_.promotions.push_back({tenant, action.epoch});
        take_turns(tenants_[tenant]);
        break;
      case BeginEpoch:
        effects_.acts.push_back(act);
        break;
      case StartDeadline:
      case EndActive:
      case EndOldActive:
      case EndStandby:
      case DismissStandby:
        return effects_.acts.push_back(act);
      case TellUnprotected:
      case TellProtected:
      case TellLost:
      case TellWaiting:
        break;
    }
    effects_.told.push_back({Told::What::Action, tenant, action, tenants_[tenant].pair.epoch, cause});
  }

  static void take_turns(TenantFacts& facts) {
    facts.active = facts.standby;
    facts.standby = {};
    facts.standby_is_warm = false;
  }

  std::vector<TenantFacts>& tenants_;
  Effects& effects_;
};

}  // namespace

void Effects::reserve(std::size_t tenants) {
  promotions.reserve(tenants);
  acts.reserve(tenants * most_steps * pair::Actions::most);
  told.reserve(tenants * most_steps * most_told_of_a_step);
}

void Effects::clear() {
  promotions.clear();
  acts.clear();
  told.clear();
}

void decide(std::vector<TenantFacts>& tenants, const Happening& happening, Effects& effects) {
  effects.clear();
  std::visit(Decision(tenants, effects), happening);
}

}  // namespace firebreak::agent
