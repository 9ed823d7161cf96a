// SPDX-License-Identifier: Apache-2.0
/// Turns (agent/turns) of those who share a GPU: reads on their pages what they want, and stores there who
/// waits.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/loop/surroundings.h"
#include "agent/settings/options.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/process.h"
#include "agent/tenants/tenants.h"
#include "agent/turns/turns.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// What people are told of a tenant's turn.
struct TurnReport {
  enum class State {
    NeverAsks,  ///< it has never asked for a turn, and never waits for one
    Idle,       ///< it wants nothing
    Goes,
    Waits,
  };
  State state = State::NeverAsks;
  turns::Class its_class = turns::Class::Batch;
  Nanoseconds waits{0};  ///< for how long by now
};
const char* to_string(TurnReport::State state);

/// Belongs to the loop's thread.
class TurnKeeper {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    const Clock& clock;
    Domains& domains;
    Tenants& tenants;
    const Processes& processes;
    const Credentials& credentials;
  };
  explicit TurnKeeper(Knows knows) : at_(knows) {}

  /// Takes up what an agent before had decided: whoever waits by its word has waited for long enough.
  void begin();
  /// Something has happened that may change who goes: gives the turns, and wakes who goes on.
  void look();
  TurnReport report_of(const Tenant& tenant) const;

 private:
  bool may_compute(const Tenant& tenant) const;
  Knows at_;
  std::map<std::string, turns::Round> gpus_;  ///< by the GPU's UUID; "": the one that CUDA finds
  bool is_first_look_ = false;
  os::Watch next_look_;
};

}  // namespace firebreak::agent
