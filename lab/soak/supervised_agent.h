// SPDX-License-Identifier: Apache-2.0
/// The agent of a soak, which is killed and comes again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/link/agent_link.h"
#include "shared/link/status_view.h"
#include "soak/settings.h"
#include "stage/stage.h"

namespace firebreak::soak {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Owned by the stage's thread; the stage and the kernel outlive it.
class SupervisedAgent {
 public:
  /// Returns when the agent serves. The stage's loop has to tick.
  static Result<std::unique_ptr<SupervisedAgent>> raise(stage::Stage& stage, os::Kernel& kernel,
                                                        const Settings& settings, Environment environment);

  const std::string& socket_path() const { return socket_path_; }
  pid_t supervisor() const { return supervisor_->record().pid; }
  /// 0: there is none just now.
  pid_t agent() const;
  /// Returns at once. False: there is none just now.
  bool kill_agent();
  /// Makes it stand still for so long, once the loop serves. Returns at once. False: there is none just now.
  bool stall_agent(Milliseconds time);
  /// Gives the agent's status; empty while there is no agent, or it stands still.
  std::optional<link::StatusView> status() const;
  /// Has `on_event` get what this agent tells from now on, on the stage's loop. Call it again after an
  /// agent's death.
  void listen(const std::function<void(const abi::Event&)>& on_event);
  bool listens() const { return events_ && !events_->lost(); }
  /// The end of the agent's log.
  std::string last_words() const;
  /// Ends it in good order. Unavailable: it had ended before.
  Status end(Milliseconds patience);

 private:
  SupervisedAgent(stage::Stage& stage, os::Kernel& kernel, std::string log)
      : stage_(stage), kernel_(kernel), log_(std::move(log)) {}

  stage::Stage& stage_;
  os::Kernel& kernel_;
  std::string log_;
  std::string socket_path_;
  stage::Actor* supervisor_ = nullptr;
  std::unique_ptr<link::AgentLink> events_;
  os::Fd stalled_;  ///< the agent that stands still
  os::Watch stall_ends_;
};

}  // namespace firebreak::soak
