// SPDX-License-Identifier: Apache-2.0
#include "park/parking.h"

#include <algorithm>

namespace firebreak::park {
namespace {

bool is_parked(Phase phase) { return phase == Phase::Halted || phase == Phase::Held; }

Step release(State state, std::vector<Action> before = {}) {
  state.phase = Phase::Released;
  before.insert(before.end(), {Action::Release, Action::StartFallLimit});
  return {std::move(state), std::move(before)};
}

Step begin(State state, Phase phase) {
  state.phase = phase;
  const Action limit = phase == Phase::Held ? Action::StartDrainLimit : Action::StartNameLimit;
  std::vector<Action> actions = {Action::Condemn, limit};
  if (phase == Phase::Held) actions.push_back(Action::Leave);
  return {std::move(state), std::move(actions)};
}

Step hold(State state) {
  state.phase = Phase::Held;
  return {std::move(state), {Action::StartDrainLimit, Action::Leave}};
}

/// A second one does not begin the drain anew.
Step name(State state, pid_t pid) {
  if (state.phase != Phase::Ready && !is_parked(state.phase)) return {std::move(state), {}};
  if (std::ranges::count(state.culprits, pid) == 0) state.culprits.push_back(pid);
  if (state.phase == Phase::Ready) return begin(std::move(state), Phase::Held);
  if (state.phase == Phase::Halted) return hold(std::move(state));
  return {std::move(state), {}};
}

Step after_deadline(State state) {
  if (is_parked(state.phase)) return release(std::move(state));
  if (state.phase == Phase::Released) return {std::move(state), {Action::EndClient, Action::StartFallLimit}};
  return {std::move(state), {}};
}

/// Whoever held the domain is gone, so it falls by itself.
Step after_client(State state) {
  if (is_parked(state.phase) || state.phase == Phase::Released) {
    state.phase = Phase::Released;
    return {std::move(state), {Action::StartFallLimit}};
  }
  return {State{}, {}};
}

}  // namespace

Step advance(const State& state, const Event& event) {
  const bool is_ready = state.phase == Phase::Ready;
  switch (event.type) {
    case EventType::ClientReady:
      if (state.phase == Phase::Off) return {State{Phase::Ready}, {}};
      break;
    case EventType::ClientGone:
      return after_client(state);
    case EventType::DumpBegan:
      if (is_ready) return begin(state, Phase::Halted);
      break;
    case EventType::BeganPartly:
      if (is_ready) return release(state);
      break;
    case EventType::Named:
      return name(state, event.pid);
    case EventType::AllDumped:
      if (state.phase == Phase::Halted) return hold(state);
      break;
    case EventType::EverybodyLeft:
      if (state.phase == Phase::Held) return release(state);
      break;
    case EventType::Deadline:
      return after_deadline(state);
    case EventType::Fell:
      if (state.phase != Phase::Off) return {State{}, {Action::EndClient, Action::Forget}};
      break;
  }
  return {state, {}};
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::Off:
      return "off";
    case Phase::Ready:
      return "ready";
    case Phase::Halted:
      return "halted";
    case Phase::Held:
      return "held";
    case Phase::Released:
      return "released";
  }
  return "?";
}

const char* to_string(EventType type) {
  switch (type) {
    case EventType::ClientReady:
      return "client ready";
    case EventType::ClientGone:
      return "client gone";
    case EventType::DumpBegan:
      return "dump began";
    case EventType::BeganPartly:
      return "began partly";
    case EventType::Named:
      return "named";
    case EventType::AllDumped:
      return "all dumped";
    case EventType::EverybodyLeft:
      return "everybody left";
    case EventType::Deadline:
      return "deadline";
    case EventType::Fell:
      return "fell";
  }
  return "?";
}

const char* to_string(Action action) {
  switch (action) {
    case Action::Condemn:
      return "condemn";
    case Action::StartNameLimit:
      return "start the name's limit";
    case Action::StartDrainLimit:
      return "start the drain's limit";
    case Action::StartFallLimit:
      return "start the fall's limit";
    case Action::Leave:
      return "leave";
    case Action::Release:
      return "release";
    case Action::EndClient:
      return "end the client";
    case Action::Forget:
      return "forget";
  }
  return "?";
}

}  // namespace firebreak::park
