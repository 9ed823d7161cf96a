// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/pair/pair.h"

#include "agent/faults/fault/source_traits.h"

namespace firebreak::pair {
namespace {

Step unchanged(const State& state) { return {state, {}}; }

Step with_phase(State state, Phase phase, const Actions& actions = {}) {
  state.phase = phase;
  return {state, actions};
}

Action lost(std::string_view reason) { return {ActionType::TellLost, 0, 0, reason}; }

Action end_old_active() { return {ActionType::EndOldActive, 0, 0, {}}; }

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
      return with_phase(state, Phase::Orphaned, {{ActionType::StartDeadline, 0, orphaned_ms, {}}});
    case Standby::None:
      break;
  }
  return with_phase(state, Phase::Lost, {lost("the active ended and it had no standby")});
}

/// Nobody but a standby that is ready takes over from whoever could go on itself.
Step hand_over(const State& state) {
  return state.standby == Standby::Ready ? take_over(state) : unchanged(state);
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

/// Its clients can take seconds to learn that their MPS server has ended. Whom nobody could follow is left to
/// notice by itself.
Step context_lost(const State& state) {
  Step step = state.phase == Phase::Suspecting ? unchanged(state) : suspect(state);
  if (state.standby == Standby::Ready) step.actions.push_back({ActionType::EndActive, 0, 0, {}});
  return step;
}

Step empty(const State& state, EventType event) {
  if (event == EventType::ActiveJoined) return with_phase(state, Phase::Serving);
  return unchanged(state);
}

/// The memory and the last commit may still be there. Nobody of before may write: the tenant was lost by a
/// fence.
Step lost_so_far(State state, EventType event) {
  if (event != EventType::ActiveJoined) return unchanged(state);
  ++state.epoch;
  return with_phase(state, Phase::Serving, {{ActionType::BeginEpoch, state.epoch, 0, {}}});
}

Step serving(const State& state, EventType event) {
  switch (event) {
    case EventType::DangerSeen:
      return suspect(state);
    case EventType::ContextLost:
      return context_lost(state);
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    case EventType::ActiveStoodDown:
      return hand_over(state);
    case EventType::DeadlinePassed:
      return {state, {end_old_active()}};
    default:
      return unchanged(state);
  }
}

Step suspecting(const State& state, EventType event) {
  switch (event) {
    case EventType::ContextLost:
      return context_lost(state);
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    case EventType::ActiveStoodDown:
      return hand_over(state);
    case EventType::DeadlinePassed:
      return with_phase(state, Phase::Serving, {end_old_active()});
    default:
      return unchanged(state);
  }
}

/// The standby may wait for memory that its active has not come to publish.
Step give_up_standby(State state) {
  state.standby = Standby::None;
  return with_phase(state, Phase::Lost,
                    {{ActionType::EndStandby, 0, 0, {}},
                     end_old_active(),
                     lost("the active ended, and its standby was not ready a minute later")});
}

Step orphaned(const State& state, EventType event) {
  if (event == EventType::DeadlinePassed) return give_up_standby(state);
  return event == EventType::StandbyReady ? take_over(state) : unchanged(state);
}

/// The names shift here: "active" is the promoted process and "old active" the fenced one, which the agent no
/// longer speaks of as active.
Step promoting(const State& state, EventType event) {
  switch (event) {
    case EventType::Resumed: {
      Actions actions = {{ActionType::StartDeadline, 0, rejoin_ms, {}}};
      if (state.standby == Standby::None) actions.push_back({ActionType::TellUnprotected, 0, 0, {}});
      return with_phase(state, Phase::Serving, actions);
    }
    case EventType::DeadlinePassed:
      return {state,
              {end_old_active(),
               {ActionType::TellWaiting, 0, 0, "the promoted process has not begun its work yet"}}};
    case EventType::ContextLost:
      if (state.standby != Standby::Ready) return unchanged(state);
      return {state, {{ActionType::EndActive, 0, 0, {}}}};
    case EventType::FenceSeen:
    case EventType::ActiveExited:
      return take_over(state);
    case EventType::ActiveFinished:
      return finish(state);
    case EventType::ActiveStoodDown:
      return hand_over(state);
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
      return lost_so_far(state, event);
    case Phase::Finished:
      break;
  }
  return unchanged(state);
}

Step standby_ready(State state) {
  state.standby = Standby::Ready;
  Step step = by_phase(state, EventType::StandbyReady);
  // Whoever took over at once is nobody's standby any more.
  if (step.state.standby == Standby::Ready) step.actions.push_back({ActionType::TellProtected, 0, 0, {}});
  return step;
}

}  // namespace

Step advance(const State& state, EventType event) {
  const bool begins_anew = state.phase == Phase::Lost && event == EventType::ActiveJoined;
  if ((state.phase == Phase::Finished || state.phase == Phase::Lost) && !begins_anew) {
    // A fenced active that hangs does not end by itself.
    return event == EventType::DeadlinePassed ? Step{state, {end_old_active()}} : unchanged(state);
  }
  if (event == EventType::StandbyJoined && state.standby == Standby::None) return standby_joined(state);
  if (event == EventType::StandbyExited) return standby_gone(state);
  if (event == EventType::StandbyReady) {
    return state.standby == Standby::Joined ? standby_ready(state) : unchanged(state);
  }
  return by_phase(state, event);
}

Step resume(const State& state) {
  switch (state.phase) {
    case Phase::Suspecting:
      return {state, {{ActionType::StartDeadline, 0, suspicion_ms, {}}}};
    case Phase::Promoting:
      return {state,
              {{ActionType::Promote, state.epoch, 0, {}}, {ActionType::StartDeadline, 0, old_active_ms, {}}}};
    case Phase::Serving:
      return {state, {{ActionType::StartDeadline, 0, rejoin_ms, {}}}};
    case Phase::Finished:
      return {state,
              {{ActionType::DismissStandby, 0, 0, {}}, {ActionType::StartDeadline, 0, old_active_ms, {}}}};
    case Phase::Lost:
      return {state,
              {lost("it had ended with nobody to take over before the agent was started anew"),
               {ActionType::EndStandby, 0, 0, {}},
               {ActionType::StartDeadline, 0, old_active_ms, {}}}};
    case Phase::Orphaned:
      return {state, {{ActionType::StartDeadline, 0, orphaned_ms, {}}}};
    case Phase::Empty:
      break;
  }
  return unchanged(state);
}

EventType event_of(const fault::Fault& fault) {
  // An Xid 13 says that an SM has raised an exception: in core dump mode the others run on beside it, for as
  // long as its domain is held (docs/how/parking.md). The Xid 43 that follows says that the channels are
  // gone.
  const bool is_of_running_sm = fault.source == fault::FaultSource::Xid && fault.xid == 13;
  const bool is_fence =
      fault::traits_of(fault.source).is_fence && fault::ends_group(fault) && !is_of_running_sm;
  return is_fence ? EventType::FenceSeen : EventType::DangerSeen;
}

}  // namespace firebreak::pair
