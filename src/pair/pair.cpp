// SPDX-License-Identifier: Apache-2.0
#include "pair/pair.h"

namespace firebreak::pair {
namespace {

Step unchanged(const State& state) { return {state, {}}; }

Step with_phase(State state, Phase phase, std::vector<Action> actions = {}) {
  state.phase = phase;
  return {state, std::move(actions)};
}

Action lost(const char* reason) { return {ActionType::TellLost, 0, 0, reason}; }

/// The active can write no more: hand over to whoever is there.
Step take_over(State state) {
  switch (state.standby) {
    case Standby::Ready:
      state.phase = Phase::Promoting;
      state.standby = Standby::None;
      ++state.epoch;
      return {state,
              {{ActionType::Promote, state.epoch, 0, {}}, {ActionType::StartDeadline, 0, old_active_ms, {}}}};
    case Standby::Joined:
      return with_phase(state, Phase::Orphaned);
    case Standby::None:
      break;
  }
  return with_phase(state, Phase::Lost, {lost("the active ended and it had no standby")});
}

Step standby_joined(State state) {
  state.standby = Standby::Joined;
  return unchanged(state);
}

Step standby_gone(State state) {
  const bool was_there = state.standby != Standby::None;
  state.standby = Standby::None;
  if (!was_there) return unchanged(state);
  if (state.phase == Phase::Orphaned) {
    return with_phase(state, Phase::Lost, {lost("the standby ended before it was ready to take over")});
  }
  return {state, {{ActionType::TellUnprotected, 0, 0, {}}}};
}

Step finish(const State& state) {
  return with_phase(state, Phase::Finished, {{ActionType::DismissStandby, 0, 0, {}}});
}

Step suspect(State state) {
  state.phase = Phase::Suspecting;
  return {state, {{ActionType::StartDeadline, 0, suspicion_ms, {}}}};
}

Step empty(const State& state, EventType event) {
  if (event == EventType::ActiveJoined) return with_phase(state, Phase::Serving);
  return unchanged(state);
}

Step serving(const State& state, EventType event) {
  switch (event) {
    case EventType::DangerSeen:
      return suspect(state);
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    default:
      return unchanged(state);
  }
}

Step suspecting(const State& state, EventType event) {
  switch (event) {
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    case EventType::DeadlinePassed:
      return with_phase(state, Phase::Serving);
    default:
      return unchanged(state);
  }
}

Step orphaned(const State& state, EventType event) {
  return event == EventType::StandbyReady ? take_over(state) : unchanged(state);
}

/// Here "active" is the promoted process and "old active" the fenced one, which the agent no longer speaks of
/// as active.
Step promoting(const State& state, EventType event) {
  std::vector<Action> actions = {{ActionType::EndOldActive, 0, 0, {}}};
  switch (event) {
    case EventType::Resumed:
      if (state.standby == Standby::None) actions.push_back({ActionType::TellUnprotected, 0, 0, {}});
      return with_phase(state, Phase::Serving, std::move(actions));
    case EventType::DeadlinePassed:
      return {state, std::move(actions)};
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    default:
      return unchanged(state);
  }
}

Step by_phase(const State& state, EventType event) {
  switch (state.phase) {
    case Phase::Empty:
      return empty(state, event);
    case Phase::Serving:
      return serving(state, event);
    case Phase::Suspecting:
      return suspecting(state, event);
    case Phase::Orphaned:
      return orphaned(state, event);
    case Phase::Promoting:
      return promoting(state, event);
    case Phase::Lost:
    case Phase::Finished:
      break;
  }
  return unchanged(state);
}

}  // namespace

Step advance(const State& state, EventType event) {
  if (state.phase == Phase::Lost || state.phase == Phase::Finished) return unchanged(state);
  if (event == EventType::StandbyJoined && state.standby == Standby::None) return standby_joined(state);
  if (event == EventType::StandbyExited) return standby_gone(state);
  if (event == EventType::StandbyReady) {
    if (state.standby != Standby::Joined) return unchanged(state);
    State ready = state;
    ready.standby = Standby::Ready;
    return by_phase(ready, event);
  }
  return by_phase(state, event);
}

EventType event_of(const fault::Fault& fault) {
  using fault::FaultClass;
  const bool whole_group =
      fault.fault_class == FaultClass::MmuReplayable || fault.fault_class == FaultClass::Sm;
  return fault.source == fault::FaultSource::Xid && whole_group ? EventType::FenceSeen
                                                                : EventType::DangerSeen;
}

}  // namespace firebreak::pair
