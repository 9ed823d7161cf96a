// SPDX-License-Identifier: Apache-2.0
/// Where an act is played: its processes, the agent's events, and waiting that always ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demo/actor.h"
#include "demo/play.h"

namespace firebreak::demo {

/// One act's processes. Those that still run when the stage goes are killed, the last started first.
class Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(os::Kernel& kernel, const Clock& clock);
  ~Stage();

  /// Starts a process. Valid until the stage goes.
  Result<Actor*> enter(
      const Casting& casting, Actor::OnLine on_line = [](const std::string&) {});
  /// Keeps what the agent at `socket_path` tells.
  Status listen_to_agent(const std::string& socket_path);
  /// Serves until `done`, at most `timeout`; Timeout says what was waited for, and who has ended in the
  /// meantime.
  Status wait(const std::string& what, Milliseconds timeout, const std::function<bool()>& done);
  /// How many events of that kind the agent has told of that tenant.
  std::size_t count(const std::string& what, const std::string& tenant) const;

  /// What was seen so far, into the act's record; `except` is not part of the play.
  void report(ActRecord& act, const Actor* except = nullptr) const;

 private:
  Stage(os::Kernel& kernel, const Clock& clock, std::unique_ptr<os::EventLoop> loop)
      : kernel_(kernel), clock_(clock), loop_(std::move(loop)) {}
  void read_event();

  os::Kernel& kernel_;
  const Clock& clock_;
  std::unique_ptr<os::EventLoop> loop_;
  os::Watch signals_;
  bool interrupted_ = false;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::unique_ptr<os::Socket> agent_;
  os::Watch agent_watch_;
  std::vector<abi::Event> events_;
};

}  // namespace firebreak::demo
