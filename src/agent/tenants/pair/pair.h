// SPDX-License-Identifier: Apache-2.0
/// The failover of one tenant as a pure function: (state, event) -> (state, actions). No clock, no I/O, no
/// randomness; the agent turns what happens into events and carries out the actions. One sequence of events
/// replays a whole run.
///
/// A promotion needs a fence: proof that nothing of the old active can reach shared memory any more.
///   * An Xid line: the driver prints it when robust-channel recovery has taken the domain's channels off the
///   GPU.
///   * The active's own end, once nobody has its GPU address space any more: neither the agent nor a child of
///   fork() nor anybody else (agent/endings/hold/other_holders.h). The exit alone proves nothing.
///   * The active's own word that its GPU work has ended and no more follows, as it hands over.
/// Everything else is only danger: a UVM event (0.3 ms after the access) comes before the recovery, a
/// neighbour's death may have left nothing in flight, and a copy engine's fault was seen to end its own
/// client alone. The pair then waits (Suspecting) for one of the two, or for the all-clear.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "agent/faults/fault/fault.h"
#include "ground/base/result.h"
#include "shared/link/pair_words.h"

namespace firebreak::pair {

struct State {
  Phase phase = Phase::Empty;
  Standby standby = Standby::None;
  std::uint32_t epoch = 0;  ///< promotions so far
  friend bool operator==(const State&, const State&) = default;
};

enum class EventType {
  ActiveJoined,
  StandbyJoined,
  StandbyReady,
  StandbyExited,
  ActiveExited,     ///< the active left without good order, and nobody keeps its GPU address space
  ActiveFinished,   ///< left in good order
  ActiveStoodDown,  ///< has waited for its GPU work, and queues none any more if somebody takes over
  DangerSeen,       ///< something that may end the active's domain, or not
  FenceSeen,        ///< proof that the active's domain can write no more
  ContextLost,      ///< the active's context is gone for certain, and nothing proves that it writes no more
  Resumed,          ///< the promoted standby's first kernel has completed, or a step that it committed
  DeadlinePassed,   ///< the timer that StartDeadline asked for
};

enum class ActionType {
  StartDeadline,    ///< report DeadlinePassed after `deadline_ms`, and no earlier deadline any more
  BeginEpoch,       ///< an active has joined a lost tenant: raise the epoch to `epoch`, so that no older one
                    ///< counts
  Promote,          ///< raise the epoch to `epoch` and wake the standby
  EndActive,        ///< end the active: its own end is the fence, once nobody else keeps what it had
  EndOldActive,     ///< end what is left of the predecessor, if anything is
  EndStandby,       ///< end a standby for which nobody waits any longer
  TellUnprotected,  ///< the tenant runs without a standby from now on
  TellProtected,    ///< the tenant has a standby from now on that could take over at once
  TellLost,         ///< the tenant's service has ended; `reason` says why
  TellWaiting,      ///< an operator has to know that the pair waits, and may for ever; `reason` says for what
  DismissStandby,   ///< the tenant is done: wake the standby so that it leaves
};

struct Action {
  ActionType type{};
  std::uint32_t epoch = 0;
  std::int64_t deadline_ms = 0;
  std::string_view reason;  ///< static text
  friend bool operator==(const Action&, const Action&) = default;
};

/// The actions of a step in their order, and in place: deciding allocates nothing, since a tenant waits for
/// what comes of it.
class Actions {
 public:
  /// Largest number of actions. No event asks for more, nor does a state that is gone on from: PairModel goes
  /// through all of them.
  static constexpr std::size_t most = 4;

  Actions() = default;
  Actions(std::initializer_list<Action> actions) {
    for (const Action& action : actions) push_back(action);
  }
  /// Appends an action; there are at most `most`.
  void push_back(const Action& action) { actions_.at(size_++) = action; }

  const Action* begin() const { return actions_.data(); }
  const Action* end() const { return actions_.data() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::array<Action, most> actions_;
  std::size_t size_ = 0;
};

struct Step {
  State state;
  Actions actions;
};

/// How long a suspected active is watched: on an H100 an MMU fault's Xid line came within 155 ms, and the
/// last co-client's error within 467 ms. Nothing is lost by waiting; a takeover happens as soon as there is a
/// fence.
inline constexpr std::int64_t suspicion_ms = 2000;
/// How long a fenced active is left alone while its successor starts. Ending a process disturbs the GPU
/// (130-170 ms were measured), so it waits for the successor's first kernel, but not for ever.
/// Then the operator is told as well that the successor does not begin: on an H100 its first kernel was done
/// 21 to 146 ms after the fault. It is not ended: its step may take long, and it has what was committed.
inline constexpr std::int64_t old_active_ms = 1000;
/// How long a standby that is starting when its active is gone is waited for. PyTorch takes 5 s to start, and
/// 80 GB of weights half a minute to read; but what it waits for may be memory that nobody will publish any
/// more. An active that is started in its place begins with the memory that there is.
inline constexpr std::int64_t orphaned_ms = 60'000;
/// Time that a predecessor has, when its successor runs, to notice (its next call says so) and to join as a
/// standby: one that only seemed to have faulted still has all that a standby needs.
inline constexpr std::int64_t rejoin_ms = 250;

/// Total: every event is legal in every state; what makes no sense changes nothing. Live: where time passes
/// and nothing else happens, the pair comes to serve, or has told that it is lost, or has told an operator
/// what it waits for; and whatever was fenced is ended.
Step advance(const State& state, EventType event);

/// Returns what an agent does that goes on from the state another one kept before it ended: whatever that one
/// may not have done. Doing it twice is harmless.
Step resume(const State& state);

/// Returns what a fault in the active's domain means to its pair.
EventType event_of(const fault::Fault& fault);

const char* to_string(EventType event);
const char* to_string(ActionType action);

}  // namespace firebreak::pair
