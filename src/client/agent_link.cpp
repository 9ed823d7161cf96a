// SPDX-License-Identifier: Apache-2.0
#include "client/agent_link.h"

#include <exception>

namespace firebreak::client {
namespace {

constexpr Milliseconds connect_timeout{2000};

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
  socket_.hang_up();
  if (reader_.joinable()) reader_.join();  // it is not where no thread could be had
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

bool AgentLink::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void AgentLink::read_until_lost() {
  while (read_one()) {
  }
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
bool AgentLink::read_one() {
  try {
    auto received = socket_.receive(Milliseconds(-1));
    if (received) handle(std::move(*received));
    return received.has_value();
  } catch (const std::exception&) {
    return false;
  }
}

void AgentLink::handle(os::Message received) {
  const auto* text = reinterpret_cast<const char*>(received.bytes.data());
  auto message = abi::decode(std::string_view(text, received.bytes.size()));
  if (message && std::holds_alternative<abi::Inject>(*message))
    return inject(std::get<abi::Inject>(*message));
  const std::lock_guard lock(mutex_);
  if (!message) {
    answer_ = Answer{abi::Refused{message.error().message}, {}};
  } else if (const auto* pushed = std::get_if<abi::Allocation>(&*message)) {
    if (received.descriptors.size() != 1) return;
    allocations_[pushed->name] = {pushed->address, pushed->size_bytes,
                                  std::move(received.descriptors.front())};
  } else {
    answer_ = Answer{std::move(*message), std::move(received.descriptors)};
  }
  changed_.notify_all();
}

void AgentLink::inject(const abi::Inject& wanted) {
  std::function<void(const abi::Inject&)> callback;
  {
    const std::lock_guard lock(mutex_);
    callback = on_inject_;
  }
  if (callback) {
    callback(wanted);
  } else {
    (void)tell(abi::Injected{0, "that process is no tenant"});
  }
}

Status AgentLink::tell(const abi::Message& message) {
  const std::string text = abi::encode(message);
  return socket_.send(std::as_bytes(std::span(text)), {}, answer_timeout);
}

Result<Answer> AgentLink::ask(const abi::Message& message, int descriptor, Milliseconds timeout) {
  const std::lock_guard one_at_a_time(asking_);
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return agent_is_gone();
    answer_.reset();
  }
  const std::string text = abi::encode(message);
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  if (auto sent = socket_.send(std::as_bytes(std::span(text)), descriptors, answer_timeout); !sent) {
    return propagate(sent, "agent");
  }
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return answer_.has_value() || lost_; });
  if (!answer_)
    return lost_ ? agent_is_gone() : fail(ErrorCode::Timeout, "the firebreak agent did not answer");
  Answer answer = std::move(*answer_);
  answer_.reset();
  if (const auto* refused = std::get_if<abi::Refused>(&answer.message)) {
    return fail(ErrorCode::PermissionDenied, refused->reason);
  }
  return answer;
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
