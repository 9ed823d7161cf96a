// SPDX-License-Identifier: Apache-2.0
/// One question to the agent, or to the next one where it is away: asked on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ground/os/event_loop.h"
#include "shared/abi/wire.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {

/// The loop goes on meanwhile, and so do signals. Belongs to the loop's thread; taken back where it goes.
class AgentRequest {
 public:
  struct Question {
    std::string socket_path;
    abi::Message message;
    Milliseconds patience{0};  ///< with each agent that is still to come
    Milliseconds answer_timeout = link::AgentLink::answer_timeout;
    /// Also where there is not even a socket. One that was killed leaves its own, one that ended by itself
    /// does not.
    bool awaits_first_agent = true;
    /// Where the agent says that it cannot be yet: it is asked again for so long.
    Milliseconds not_yet_patience{0};
    /// Of the first such answer, on the request's thread; empty: nobody is told.
    std::function<void(const std::string& why)> on_not_yet = nullptr;
  };
  /// With the link that was answered by. Errors as AgentLink's.
  using Done = std::function<void(Result<link::Answer>, std::unique_ptr<link::AgentLink>)>;

  /// `first` is asked first, where it is one. `done` is called once, on the loop's thread, and may end this.
  AgentRequest(os::EventLoop& loop, Question question, std::unique_ptr<link::AgentLink> first, Done done);
  AgentRequest(const AgentRequest&) = delete;
  AgentRequest& operator=(const AgentRequest&) = delete;
  ~AgentRequest();

 private:
  void ask();
  Status connect();
  bool is_away(const Error& error);
  bool is_not_yet(const Error& error);
  bool is_taken_back_within(Milliseconds time);
  void post_answer();
  void deliver();

  os::EventLoop& loop_;
  const Question question_;
  Done done_;
  std::shared_ptr<AgentRequest*> self_;  ///< what is posted to the loop looks whether we are still there
  std::mutex mutex_;                     ///< guards the next two
  std::unique_ptr<link::AgentLink> link_;
  bool taken_back_ = false;
  std::condition_variable changed_;
  bool awaits_next_;                            ///< the thread's
  std::optional<Monotonic> not_yet_until_;      ///< the thread's
  std::optional<Result<link::Answer>> answer_;  ///< the thread's, and then the loop's
  std::thread thread_;                          ///< last: it uses all others
};

}  // namespace firebreak::cli
