// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/parking.h"

#include <algorithm>

namespace firebreak::park {
namespace {

ParkingStep release(ParkingState state) {
  state.phase = ParkingPhase::Released;
  return {std::move(state), {ParkingAction::Release, ParkingAction::StartFallLimit}};
}

ParkingStep halt(ParkingState state) {
  state.phase = ParkingPhase::Halted;
  return {std::move(state), {ParkingAction::Condemn, ParkingAction::StartNameLimit}};
}

ParkingStep hold(ParkingState state) {
  state.phase = ParkingPhase::Held;
  return {std::move(state), {ParkingAction::StartDrainLimit, ParkingAction::Leave}};
}

/// A second one does not begin the drain anew.
ParkingStep name(ParkingState state, pid_t pid) {
  if (state.phase != ParkingPhase::Ready && !is_parked(state.phase)) return {std::move(state), {}};
  if (!state.is_culprit(pid)) state.culprits.push_back(pid);
  if (state.phase == ParkingPhase::Held) return {std::move(state), {}};
  const bool is_first_word = state.phase == ParkingPhase::Ready;
  ParkingStep step = hold(std::move(state));
  if (is_first_word) step.actions.insert(step.actions.begin(), ParkingAction::Condemn);
  return step;
}

ParkingStep after_deadline(ParkingState state) {
  if (is_parked(state.phase)) return release(std::move(state));
  if (state.phase == ParkingPhase::Released)
    return {std::move(state), {ParkingAction::EndClient, ParkingAction::StartFallLimit}};
  return {std::move(state), {}};
}

/// Whoever held the domain is gone, so it falls by itself.
ParkingStep after_client(ParkingState state) {
  if (is_parked(state.phase) || state.phase == ParkingPhase::Released) {
    state.phase = ParkingPhase::Released;
    return {std::move(state), {ParkingAction::StartFallLimit}};
  }
  return {ParkingState{}, {}};
}

}  // namespace

bool is_parked(ParkingPhase phase) { return phase == ParkingPhase::Halted || phase == ParkingPhase::Held; }

bool ParkingState::is_culprit(pid_t pid) const { return std::ranges::count(culprits, pid) > 0; }

ParkingStep advance(const ParkingState& state, const ParkingEvent& event) {
  const bool is_ready = state.phase == ParkingPhase::Ready;
  switch (event.type) {
    case ParkingEventType::ClientReady:
      if (state.phase == ParkingPhase::Off) return {ParkingState{ParkingPhase::Ready}, {}};
      break;
    case ParkingEventType::ClientGone:
      return after_client(state);
    case ParkingEventType::DumpBegan:
      if (is_ready) return halt(state);
      break;
    case ParkingEventType::BeganPartly:
      if (is_ready) return release(state);
      break;
    case ParkingEventType::Named:
      return name(state, event.pid);
    case ParkingEventType::CulpritGone:
      if (state.phase == ParkingPhase::Held && state.is_culprit(event.pid)) return release(state);
      break;
    case ParkingEventType::AllDumped:
      if (state.phase == ParkingPhase::Halted) return hold(state);
      break;
    case ParkingEventType::EverybodyLeft:
    case ParkingEventType::MemoryFault:
      if (state.phase == ParkingPhase::Held) return release(state);
      break;
    case ParkingEventType::Deadline:
      return after_deadline(state);
    case ParkingEventType::Fell:
      // There were dumps also where it could not be parked.
      if (state.phase == ParkingPhase::Off) return {state, {ParkingAction::Forget}};
      return {ParkingState{}, {ParkingAction::EndClient, ParkingAction::Forget}};
  }
  return {state, {}};
}

const char* to_string(ParkingPhase phase) {
  switch (phase) {
    case ParkingPhase::Off:
      return "off";
    case ParkingPhase::Ready:
      return "ready";
    case ParkingPhase::Halted:
      return "halted";
    case ParkingPhase::Held:
      return "held";
    case ParkingPhase::Released:
      return "released";
  }
  return "?";
}

const char* to_string(ParkingEventType type) {
  switch (type) {
    case ParkingEventType::ClientReady:
      return "client ready";
    case ParkingEventType::ClientGone:
      return "client gone";
    case ParkingEventType::DumpBegan:
      return "dump began";
    case ParkingEventType::BeganPartly:
      return "began partly";
    case ParkingEventType::Named:
      return "named";
    case ParkingEventType::CulpritGone:
      return "culprit gone";
    case ParkingEventType::AllDumped:
      return "all dumped";
    case ParkingEventType::EverybodyLeft:
      return "everybody left";
    case ParkingEventType::MemoryFault:
      return "memory fault";
    case ParkingEventType::Deadline:
      return "deadline";
    case ParkingEventType::Fell:
      return "fell";
  }
  return "?";
}

const char* to_string(ParkingAction action) {
  switch (action) {
    case ParkingAction::Condemn:
      return "condemn";
    case ParkingAction::StartNameLimit:
      return "start the name's limit";
    case ParkingAction::StartDrainLimit:
      return "start the drain's limit";
    case ParkingAction::StartFallLimit:
      return "start the fall's limit";
    case ParkingAction::Leave:
      return "leave";
    case ParkingAction::Release:
      return "release";
    case ParkingAction::EndClient:
      return "end the client";
    case ParkingAction::Forget:
      return "forget";
  }
  return "?";
}

}  // namespace firebreak::park
