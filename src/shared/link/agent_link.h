// SPDX-License-Identifier: Apache-2.0
/// A tenant's connection to the agent: questions and their answers, and what the agent says unasked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/socket.h"
#include "shared/abi/wire.h"
#include "shared/link/question.h"

namespace firebreak::link {

/// Reads on a thread of its own, so that nothing the agent sends waits for the tenant. Thread safe.
class AgentLink {
 public:
  /// How long an answer may take; the agent answers from memory.
  static constexpr Milliseconds answer_timeout{5000};

  /// Unavailable, with what to do, when nobody listens there; NotFound when there is no such socket.
  static Result<std::unique_ptr<AgentLink>> connect(const std::string& socket_path);
  ~AgentLink();

  /// How to come back to the next agent where one is killed: for `patience` it is waited for and asked with
  /// `words`.
  struct Return {
    std::string socket_path;
    abi::Rejoin words;
    Milliseconds patience{0};
  };
  /// Makes the link be lost only when the next agent does not come, or does not want us, also where the one
  /// that we are connected to has gone already. Questions that are under way meanwhile are asked again. The
  /// maker of the link calls it once.
  void come_back(Return how);
  /// Sets what the agent is told of this standby when the link comes back.
  void say_ready(bool ready);
  /// Why the agent does not want this process back; empty: nothing of the kind has been said.
  std::string refusal() const;

  /// Ends the link: whoever waits for an answer is told so at once.
  void hang_up();

  /// Called once, on the reading thread, when the agent is gone for good.
  void on_lost(std::function<void()> callback);
  bool lost() const;

  /// Sends and waits for the answer. PermissionDenied with the agent's reason when it refuses; Unavailable
  /// when it is gone; Timeout when it does not answer within `timeout`: then it may yet do what it was asked,
  /// and what it answers is dropped, with the descriptors that come along.
  Result<Answer> ask(const abi::Message& message, int descriptor = -1, Milliseconds timeout = answer_timeout);

  /// Domains and tenants as JSON, for status_view. Errors as ask(); Protocol when something else is answered.
  Result<std::string> status(Milliseconds timeout = answer_timeout);

  /// Sends what is not answered; also for the reading thread.
  Status tell(const abi::Message& message);

  /// Called on the reading thread when an agent is gone, before the next one is asked.
  void on_away(std::function<void()> callback);

  /// Called on the reading thread for every fault that the agent wants in this process. Without one, such
  /// requests are refused.
  void on_inject(std::function<void(const abi::Inject&)> callback);

  /// Called on the reading thread when the agent wants this process to hand over.
  void on_hand_over(std::function<void()> callback);

  /// Has `callback` called on the reading thread for every Event of this agent from now on. Errors as ask().
  Status subscribe(std::function<void(const abi::Event&)> callback);

  struct SharedAllocation {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    abi::Memory memory = abi::Memory::State;
    bool is_shared = false;  ///< as of abi::Allocation
    os::Fd descriptor;
  };
  /// Asks for the tenant's allocation `name`, and again when there is news of it (negative timeout: for
  /// ever). NotFound when the time is up and there is none; otherwise errors as ask().
  Result<SharedAllocation> take_allocation(const std::string& name, Milliseconds timeout);
  /// The same for what another tenant shares. InvalidArgument: it shares other memory, and none of that name.
  Result<SharedAllocation> take_shared(const std::string& owner, const std::string& name,
                                       Milliseconds timeout);

 private:
  using SharedSocket = std::shared_ptr<os::Socket>;

  explicit AgentLink(os::Socket socket) : socket_(std::make_shared<os::Socket>(std::move(socket))) {}
  void read_until_lost();
  bool is_to_return();
  void be_lost();
  bool read_one(os::Socket& socket);
  void handle(os::Message received);
  bool is_news(const abi::Message& message);
  void announce(const std::string& what);
  /// `news`: what the agent announces once it has it.
  Result<SharedAllocation> take(const abi::Message& question, const std::string& news, Milliseconds timeout);
  void take_answer(abi::Letter letter, std::vector<os::Fd> descriptors);
  /// Callers do not hold mutex_, which the callback may want.
  template <class Callback>
  Callback copy_of(const Callback& callback) const {
    const std::lock_guard lock(mutex_);
    return callback;
  }
  void inject(const abi::Inject& wanted);
  void ask_for_hand_over() const;
  void pass_on(const abi::Event& event) const;
  SharedSocket socket() const;
  bool find_next_agent();
  bool is_closing_within(Milliseconds time);
  /// The answer of the next agent to a process that comes back. Died: the agent was killed as well, and there
  /// may be another.
  enum class Welcome { Wanted, Refused, Died };
  Welcome present(os::Socket& socket, const abi::Rejoin& words);
  static Status send(os::Socket& socket, const std::string& text, int descriptor = -1);
  Status wait_until_connected(std::unique_lock<std::mutex>& lock,
                              std::chrono::steady_clock::time_point deadline);

  std::mutex asking_;         ///< one question at a time; taken before mutex_
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  SharedSocket socket_;  ///< null while the next agent is waited for; written a whole message at a time
  std::optional<Return> return_;
  bool closing_ = false;
  bool lost_ = false;
  std::string refusal_;
  std::uint64_t last_number_ = 0;  ///< number of our last request, whichever agent it went to
  std::uint64_t awaited_ = 0;      ///< the one whose answer somebody waits for; 0: nobody does
  std::optional<Answer> answer_;
  std::set<std::string> announced_;  ///< allocations that came, and "TENANT/" for each that shares by now
  std::uint64_t agents_ = 1;         ///< number of agents that we have been connected to
  std::function<void()> on_lost_;
  std::function<void()> on_away_;
  std::function<void(const abi::Inject&)> on_inject_;
  std::function<void()> on_hand_over_;
  std::function<void(const abi::Event&)> on_event_;
  std::thread reader_;
};

}  // namespace firebreak::link
