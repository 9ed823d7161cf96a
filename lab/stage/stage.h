// SPDX-License-Identifier: Apache-2.0
/// A stage directs several processes at once, with waiting that always ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stage/actor.h"

namespace firebreak::stage {

/// One thread's. Processes that still run when the stage goes are killed, the last started first.
class Stage {
 public:
  /// SIGINT, SIGTERM and SIGHUP do not end this process from now on; each ends the waiting that it meets, so
  /// that what is waited for after it, to leave nothing behind, is waited for.
  static Result<std::unique_ptr<Stage>> create(os::Kernel& kernel, const Clock& clock);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  /// Starts a process. Valid until the stage goes.
  Result<Actor*> enter(
      const Casting& casting, Actor::OnLine on_line = [](const std::string&) {});
  /// Serves until `done`, at most `timeout`. Timeout says what was waited for, and who has ended in the
  /// meantime; Unavailable: somebody interrupted us.
  Status wait(const std::string& what, Milliseconds timeout, const std::function<bool()>& done);

  /// Watch what else counts here.
  os::EventLoop& loop() { return *loop_; }
  /// Actors in the order in which they entered.
  const std::vector<std::unique_ptr<Actor>>& actors() const { return actors_; }
  /// One of the signals came.
  bool interrupted() const { return interrupted_; }

 private:
  Stage(os::Kernel& kernel, const Clock& clock, std::unique_ptr<os::EventLoop> loop)
      : kernel_(kernel), clock_(clock), loop_(std::move(loop)) {}

  os::Kernel& kernel_;
  const Clock& clock_;
  std::unique_ptr<os::EventLoop> loop_;
  os::Watch signals_;
  bool interrupted_ = false;
  bool unheard_ = false;  ///< true: no waiting has ended for it yet
  std::vector<std::unique_ptr<Actor>> actors_;
};

}  // namespace firebreak::stage
