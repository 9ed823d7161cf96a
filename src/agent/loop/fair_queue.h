// SPDX-License-Identifier: Apache-2.0
/// What has to be done for one process after the other, and costs the loop time: so many at once as a turn of
/// the loop has time for, then one a turn, and of no user more than its share.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "agent/loop/allowance.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

struct FairQueueLimits {
  AllowanceLimits of_user = {.share = 0.5};
  Nanoseconds of_a_turn = std::chrono::milliseconds(5);
};

/// Belongs to the loop's thread. Everything that was put is done, each once, and those of one user in their
/// order.
class FairQueue {
 public:
  using Act = std::function<void(pid_t)>;
  /// The references outlive it.
  FairQueue(os::EventLoop& loop, const Clock& clock, Act act, FairQueueLimits limits = {})
      : loop_(loop), clock_(clock), act_(std::move(act)), limits_(limits) {}

  /// Done before this returns where there is time for it.
  void put(uid_t user, pid_t pid);
  /// Does it now, where it waits: its number is another process's from here on.
  void settle(pid_t pid);
  bool waits(pid_t pid) const;

 private:
  struct User {
    Allowance allowance;
    std::deque<pid_t> waiting;
  };
  User& of(uid_t user) {
    return users_.try_emplace(user, User{Allowance(limits_.of_user), {}}).first->second;
  }
  void act(uid_t user, pid_t pid);
  void take_turn();
  void come_again();
  /// Whose turn it is, after who had the last one; none: nobody may now.
  std::optional<uid_t> next() const;

  os::EventLoop& loop_;
  const Clock& clock_;
  Act act_;
  FairQueueLimits limits_;
  std::map<uid_t, User> users_;
  uid_t last_ = 0;
  Nanoseconds spent_{0};  ///< in this turn of the loop
  os::Watch turn_;        ///< the next one
};

}  // namespace firebreak::agent
