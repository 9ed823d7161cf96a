// SPDX-License-Identifier: Apache-2.0
/// The decisions that follow when a kernel of an MPS domain raises an exception while all the domain's
/// clients are in the core dump mode: (state, event) -> (state, actions). Pure: no clock, no I/O. One client
/// of the domain is the agent's own and does nothing. While its dump is not complete the driver does not
/// reset the domain, and whoever has completed its own goes on: that is what holds a parked domain. When it
/// lets its dump go, the domain falls as it does without parking.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

namespace firebreak::park {

enum class ParkingPhase {
  Off,       ///< the parking client is not there: an exception ends the domain as ever
  Ready,     ///< nothing has happened
  Halted,    ///< somebody has raised an exception, and nobody knows yet who
  Held,      ///< the culprit is known, or will not be: the others go on, and leave
  Released,  ///< the parking client has let its dump go, and the domain is to fall
};
const char* to_string(ParkingPhase phase);
/// Somebody has raised an exception, and the others run on or will.
bool is_parked(ParkingPhase phase);

struct ParkingState {
  ParkingPhase phase = ParkingPhase::Off;
  std::vector<pid_t> culprits = {};  ///< culprits in the order in which they became known
  bool is_culprit(pid_t pid) const;
  bool operator==(const ParkingState&) const = default;
};

enum class ParkingEventType {
  ClientReady,  ///< the parking client is in the domain, in the mode
  ClientGone,   ///< the parking client has ended
  DumpBegan,    ///< a client of the domain has begun its dump
  BeganPartly,  ///< the same, where dumps of two clients would be in one pipe
  Named,        ///< the exception was raised by that process's kernel
  CulpritGone,  ///< that process has ended: on an H100 its neighbours then stand still until the reset
  AllDumped,    ///< every dump is complete but the parking client's, and none names anybody
  EverybodyLeft,  ///< nobody but culprits is in the domain
  MemoryFault,    ///< a memory fault of a client, in the kernel log: on an H100 the others then stood still
                  ///< until the reset
  Deadline,       ///< the timer that StartDeadline asked for
  Fell,           ///< the driver has reset the domain
};
const char* to_string(ParkingEventType type);

struct ParkingEvent {
  ParkingEventType type{};
  pid_t pid = 0;  ///< the process of Named and CulpritGone
};

enum class ParkingAction {
  Condemn,          ///< the domain takes nobody from now on
  StartNameLimit,   ///< a Deadline for the culprit's name
  StartDrainLimit,  ///< a Deadline for all others to leave
  StartFallLimit,   ///< a Deadline for the driver to reset the domain
  Leave,            ///< whoever can leave the domain does, but for culprits
  Release,          ///< the parking client's dump is let go
  EndClient,        ///< the parking client and the culprits are ended: the driver does not come to it
  Forget,           ///< forget dumps and timers
};
const char* to_string(ParkingAction action);

struct ParkingStep {
  ParkingState state;
  std::vector<ParkingAction> actions;
};

ParkingStep advance(const ParkingState& state, const ParkingEvent& event);

}  // namespace firebreak::park
