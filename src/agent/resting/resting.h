// SPDX-License-Identifier: Apache-2.0
/// Tenants that give their GPU up for a while, and get it again: `firebreak suspend` and `firebreak resume`.
/// How far a program has gone stands on its own page, so the agent keeps nothing of it for its successor.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "agent/loop/server.h"
#include "agent/parking/spares.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/process.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenants.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Resting {
 public:
  struct Knows {
    os::EventLoop& loop;
    const Clock& clock;
    Server& server;
    Tenants& tenants;
    Processes& processes;
    Spares& spares;
    Answers& answers;
    Teller& teller;
  };
  /// `on_rest`: the process has given back what it had of the GPU.
  Resting(Knows knows, std::function<void(pid_t pid)> on_rest) : at_(knows), on_rest_(std::move(on_rest)) {}

  /// Answers once the program has dealt with it, however long that takes.
  void ask(Connection& connection, const abi::Rest& request);
  void on_exit(pid_t pid);

 private:
  struct Pending {
    Asker asker;
    std::string tenant;
    abi::RestLevel wanted = abi::RestLevel::Awake;
    abi::RestLevel before = abi::RestLevel::Awake;
    std::uint32_t question = 0;
  };

  Result<pid_t> find(const abi::Rest& request) const;
  void look();
  void look_later();
  void end(pid_t pid, const Pending& pending, const SpareView& view);
  void tell(pid_t pid, const Pending& pending, const SpareView& view);

  Knows at_;
  std::function<void(pid_t pid)> on_rest_;
  std::map<pid_t, Pending> pending_;
  Monotonic newest_question_{};
  Monotonic next_look_{};  ///< where there is one
  os::Watch looking_;
};

}  // namespace firebreak::agent
