// SPDX-License-Identifier: Apache-2.0
#include "client/agent_link.h"

#include <exception>

namespace firebreak::client {
namespace {

constexpr Milliseconds connect_timeout{2000};
/// Between two looks whether the next agent is there.
constexpr Milliseconds look_pause{20};

tl::unexpected<Error> agent_is_gone() { return fail(ErrorCode::Unavailable, "the firebreak agent is gone"); }

}  // namespace

Result<std::unique_ptr<AgentLink>> AgentLink::connect(const std::string& socket_path) {
  auto socket = os::connect(socket_path, connect_timeout);
  if (!socket) {
    return fail(ErrorCode::Unavailable,
                "no firebreak agent at " + socket_path + ": " + socket.error().message,
                "start firebreakd, or set FIREBREAK_SOCKET to its socket");
  }
  std::unique_ptr<AgentLink> link(new AgentLink(std::move(*socket)));
  link->reader_ = std::thread([raw = link.get()] { raw->read_until_lost(); });
  return link;
}

AgentLink::~AgentLink() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (socket_) socket_->hang_up();
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();  // it is not where no thread could be had
}

void AgentLink::come_back(Return how) {
  const std::lock_guard lock(mutex_);
  if (how.patience > Milliseconds(0)) return_ = std::move(how);
}

void AgentLink::say_ready(bool ready) {
  const std::lock_guard lock(mutex_);
  if (return_) return_->words.ready = ready;
}

std::string AgentLink::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void AgentLink::on_lost(std::function<void()> callback) {
  bool already = false;
  {
    const std::lock_guard lock(mutex_);
    already = lost_;
    if (!already) on_lost_ = callback;
  }
  if (already) callback();
}

void AgentLink::on_inject(std::function<void(const abi::Inject&)> callback) {
  const std::lock_guard lock(mutex_);
  on_inject_ = std::move(callback);
}

Status AgentLink::subscribe(std::function<void(const abi::Event&)> callback) {
  {
    const std::lock_guard lock(mutex_);
    on_event_ = std::move(callback);
  }
  if (const auto answer = ask(abi::Subscribe{}); !answer) return propagate(answer);
  return {};
}

void AgentLink::on_hand_over(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_hand_over_ = std::move(callback);
}

bool AgentLink::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void AgentLink::read_until_lost() {
  do {
    const SharedSocket current = socket();
    while (read_one(*current)) {
    }
  } while (find_next_agent());
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    callback = std::move(on_lost_);
  }
  changed_.notify_all();
  if (callback) callback();
}

/// False: nothing more will come. An exception would end the tenant's process; without memory there is no
/// link.
bool AgentLink::read_one(os::Socket& socket) {
  try {
    auto received = socket.receive(Milliseconds(-1));
    if (received) handle(std::move(*received));
    return received.has_value();
  } catch (const std::exception&) {
    return false;
  }
}

AgentLink::SharedSocket AgentLink::socket() const {
  const std::lock_guard lock(mutex_);
  return socket_;
}

/// False: there is none, or it does not know us.
bool AgentLink::find_next_agent() {
  std::optional<Return> how;
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || !return_) return false;
    how = return_;
    socket_.reset();
  }
  changed_.notify_all();
  const auto deadline = std::chrono::steady_clock::now() + how->patience;
  while (!is_closing_within(look_pause) && std::chrono::steady_clock::now() < deadline) {
    auto found = os::connect(how->socket_path, connect_timeout);
    if (!found) continue;
    const auto next = std::make_shared<os::Socket>(std::move(*found));
    const Welcome welcome = present(*next, how->words);
    if (welcome == Welcome::Died) continue;
    if (welcome == Welcome::Refused) return false;
    {
      const std::lock_guard lock(mutex_);
      socket_ = next;
      if (closing_) next->hang_up();
    }
    changed_.notify_all();
    return true;
  }
  return false;
}

bool AgentLink::is_closing_within(Milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return closing_; });
}

/// What arrives before the answer, the tenant's memory, is taken as ever.
AgentLink::Welcome AgentLink::present(os::Socket& socket, const abi::Rejoin& words) {
  if (!send(socket, words)) return Welcome::Died;
  for (;;) {
    auto received = socket.receive(answer_timeout);
    if (!received) return Welcome::Died;
    const auto* text = reinterpret_cast<const char*>(received->bytes.data());
    const auto message = abi::decode(std::string_view(text, received->bytes.size()));
    if (!message) return Welcome::Refused;
    if (const auto* refused = std::get_if<abi::Refused>(&*message)) {
      const std::lock_guard lock(mutex_);
      refusal_ = refused->reason;
      return Welcome::Refused;
    }
    if (std::holds_alternative<abi::Done>(*message)) return Welcome::Wanted;
    handle(std::move(*received));
  }
}

void AgentLink::handle(os::Message received) {
  const auto* text = reinterpret_cast<const char*>(received.bytes.data());
  auto message = abi::decode(std::string_view(text, received.bytes.size()));
  if (message && std::holds_alternative<abi::Inject>(*message))
    return inject(std::get<abi::Inject>(*message));
  if (message && std::holds_alternative<abi::HandOver>(*message)) return ask_for_hand_over();
  if (message && std::holds_alternative<abi::Event>(*message)) return pass_on(std::get<abi::Event>(*message));
  const std::lock_guard lock(mutex_);
  if (!message) {
    answer_ = Answer{abi::Refused{message.error().message}, {}};
  } else if (const auto* pushed = std::get_if<abi::Allocation>(&*message)) {
    if (received.descriptors.size() != 1) return;
    ++allocations_seen_;
    allocations_[pushed->name] = {pushed->address, pushed->size_bytes, pushed->memory,
                                  std::move(received.descriptors.front())};
  } else {
    answer_ = Answer{std::move(*message), std::move(received.descriptors)};
  }
  changed_.notify_all();
}

void AgentLink::inject(const abi::Inject& wanted) {
  if (const auto callback = copy_of(on_inject_)) {
    callback(wanted);
  } else {
    (void)tell(abi::Injected{0, "that process is no tenant"});
  }
}

void AgentLink::ask_for_hand_over() const {
  if (const auto callback = copy_of(on_hand_over_)) callback();
}

void AgentLink::pass_on(const abi::Event& event) const {
  if (const auto callback = copy_of(on_event_)) callback(event);
}

Status AgentLink::send(os::Socket& socket, const abi::Message& message, int descriptor) {
  const std::string text = abi::encode(message);
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  return socket.send(std::as_bytes(std::span(text)), descriptors, answer_timeout);
}

Status AgentLink::tell(const abi::Message& message) {
  const SharedSocket current = socket();
  return current ? send(*current, message) : Status(agent_is_gone());
}

Status AgentLink::wait_until_connected(std::unique_lock<std::mutex>& lock,
                                       std::chrono::steady_clock::time_point deadline) {
  changed_.wait_until(lock, deadline, [this] { return socket_ != nullptr || lost_; });
  if (lost_) return agent_is_gone();
  return socket_ ? Status{} : fail(ErrorCode::Timeout, "the firebreak agent has not come back yet");
}

Result<Answer> AgentLink::ask(const abi::Message& message, int descriptor, Milliseconds timeout) {
  const std::lock_guard one_at_a_time(asking_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  do {
    if (auto connected = wait_until_connected(lock, deadline); !connected) return propagate(connected);
    answer_.reset();
    const SharedSocket current = socket_;
    lock.unlock();
    const Status sent = send(*current, message, descriptor);
    lock.lock();
    if (!sent && !return_) return propagate(sent, "agent");
    // With another agent, the question is a new one.
    changed_.wait_until(lock, deadline, [&] { return answer_.has_value() || lost_ || socket_ != current; });
  } while (!answer_ && !lost_ && std::chrono::steady_clock::now() < deadline);
  if (!answer_)
    return lost_ ? agent_is_gone() : fail(ErrorCode::Timeout, "the firebreak agent did not answer");
  Answer answer = std::move(*answer_);
  answer_.reset();
  if (const auto* refused = std::get_if<abi::Refused>(&answer.message)) {
    return fail(refused->used_up ? ErrorCode::ResourceExhausted : ErrorCode::PermissionDenied,
                refused->reason);
  }
  return answer;
}

Result<std::string> AgentLink::status() {
  auto answer = ask(abi::StatusRequest{});
  if (!answer) return propagate(answer);
  auto* report = std::get_if<abi::Report>(&answer->message);
  if (report == nullptr) return fail(ErrorCode::Protocol, "the agent answered something else");
  return std::move(report->json);
}

Status AgentLink::wait_for_allocations(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, answer_timeout, [&] { return allocations_seen_ >= count || lost_; });
  if (allocations_seen_ >= count) return {};
  return lost_ ? Status(agent_is_gone())
               : fail(ErrorCode::Timeout, "the agent did not send the tenant's memory");
}

Result<AgentLink::SharedAllocation> AgentLink::take_allocation(const std::string& name,
                                                               Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  auto there = [this, &name] { return allocations_.contains(name) || lost_; };
  if (timeout < Milliseconds(0)) {
    changed_.wait(lock, there);
  } else {
    changed_.wait_for(lock, timeout, there);
  }
  const auto found = allocations_.find(name);
  if (found == allocations_.end()) {
    if (lost_) return agent_is_gone();
    return fail(ErrorCode::NotFound, "the tenant has no allocation '" + name + "'");
  }
  SharedAllocation taken = std::move(found->second);
  allocations_.erase(found);
  return taken;
}

}  // namespace firebreak::client
