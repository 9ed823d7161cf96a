// SPDX-License-Identifier: Apache-2.0
/// The stage of an act: its processes and their steps, and the agent's events.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "demo/play.h"
#include "ground/os/socket.h"
#include "stage/stage.h"

namespace firebreak::demo {

using stage::Actor;
using stage::Casting;

/// One act's processes. Those that still run when the stage goes are killed, the last started first.
class Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(os::Kernel& kernel, const Clock& clock);

  /// Starts a process; `on_line` gets every line of its standard output that is not a progress mark. Valid
  /// until the stage goes.
  Result<Actor*> enter(
      const Casting& casting, Actor::OnLine on_line = [](const std::string&) {});
  /// Keeps what the agent at `socket_path` tells.
  Status listen_to_agent(const std::string& socket_path);
  /// Serves until `done`, at most `timeout`; Timeout says what was waited for, and who has ended in the
  /// meantime.
  Status wait(const std::string& what, Milliseconds timeout, const std::function<bool()>& done) {
    return processes_->wait(what, timeout, done);
  }
  /// How many events of that kind the agent has told of that tenant.
  std::size_t count(abi::EventKind what, const std::string& tenant) const;
  /// The first of these; null: there is none. Valid until the next one comes.
  const abi::Event* first(abi::EventKind what, const std::string& tenant) const;
  /// Watch what else counts here.
  os::EventLoop& loop() { return processes_->loop(); }
  /// Steps seen to be done, from the start.
  std::uint64_t steps_done(const Actor& actor) const;

  /// Writes what was seen so far into the act's record; `except` is not part of the play.
  void report(ActRecord& act, const Actor* except = nullptr) const;

 private:
  explicit Stage(std::unique_ptr<stage::Stage> processes) : processes_(std::move(processes)) {}
  void read_event();

  /// keyed by the actor's place in the order of entering
  std::map<std::size_t, std::vector<StepMark>> steps_;
  std::unique_ptr<os::Socket> agent_;
  std::vector<abi::Event> events_;
  std::unique_ptr<stage::Stage> processes_;
  os::Watch agent_watch_;
};

}  // namespace firebreak::demo
