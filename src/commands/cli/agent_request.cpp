// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/agent_request.h"

#include <algorithm>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::cli {
namespace {

/// Between two looks whether the next agent is there.
constexpr Milliseconds look_pause{20};
/// Before the agent is asked again what could not be yet: twice as long each time.
constexpr Milliseconds first_not_yet_pause{100};
constexpr Milliseconds longest_not_yet_pause{2'000};

}  // namespace

AgentRequest::AgentRequest(os::EventLoop& loop, Question question, std::unique_ptr<link::AgentLink> first,
                           Done done)
    : loop_(loop),
      question_(std::move(question)),
      done_(std::move(done)),
      self_(std::make_shared<AgentRequest*>(this)),
      link_(std::move(first)),
      awaits_next_(question_.awaits_first_agent) {
  auto thread = os::start_thread([this] { ask(); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {
    answer_ = propagate(thread);
    post_answer();
  }
}

AgentRequest::~AgentRequest() {
  {
    const std::lock_guard lock(mutex_);
    taken_back_ = true;
    if (link_) link_->hang_up();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AgentRequest::ask() {
  const SystemClock clock;
  Monotonic deadline = clock.now() + question_.patience;
  Milliseconds not_yet_pause = first_not_yet_pause;
  for (;;) {
    const Status connected = connect();
    answer_ = connected ? link_->ask(question_.message, -1, question_.answer_timeout)
                        : Result<link::Answer>(propagate(connected));
    const bool not_yet = !*answer_ && is_not_yet(answer_->error());
    if (*answer_ || (!not_yet && !is_away(answer_->error()))) break;
    if (connected) deadline = clock.now() + question_.patience;
    if (clock.now() >= deadline) break;
    if (is_taken_back_within(not_yet ? not_yet_pause : look_pause)) return;
    if (not_yet) not_yet_pause = std::min(not_yet_pause * 2, longest_not_yet_pause);
  }
  post_answer();
}

void AgentRequest::post_answer() {
  loop_.post([self = std::weak_ptr(self_)] {
    if (const auto request = self.lock()) (*request)->deliver();
  });
}

/// With whoever listens now, where the one before is gone.
Status AgentRequest::connect() {
  if (link_ && !link_->lost()) return {};
  auto next = link::AgentLink::connect(question_.socket_path);
  const std::lock_guard lock(mutex_);
  link_ = next ? std::move(*next) : nullptr;
  if (!next) return propagate(next);
  if (taken_back_) link_->hang_up();
  return {};
}

bool AgentRequest::is_away(const Error& error) {
  if (!link_ && error.code == ErrorCode::PermissionDenied) return false;
  // We lack something: no agent that comes can give it to us.
  if (!link_ && error.code == ErrorCode::ResourceExhausted) return false;
  const bool is_nowhere = !link_ && error.code == ErrorCode::NotFound;
  if (is_nowhere && !awaits_next_) return false;
  awaits_next_ = true;
  return is_nowhere || error.code == ErrorCode::Unavailable || !link_ || link_->lost();
}

/// While there is patience for it. Whoever waits is told why.
bool AgentRequest::is_not_yet(const Error& error) {
  if (error.code != ErrorCode::NotYet) return false;
  awaits_next_ = true;  // there was one
  const Monotonic now = SystemClock().now();
  if (!not_yet_until_) {
    not_yet_until_ = now + question_.not_yet_patience;
    if (now < *not_yet_until_ && question_.on_not_yet) question_.on_not_yet(to_string(error));
  }
  return now < *not_yet_until_;
}

bool AgentRequest::is_taken_back_within(Milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return taken_back_; });
}

void AgentRequest::deliver() {
  // Whoever is called may end us.
  const Done done = std::move(done_);
  Result<link::Answer> answer = std::move(*answer_);
  auto link = std::move(link_);
  done(std::move(answer), std::move(link));
}

}  // namespace firebreak::cli
