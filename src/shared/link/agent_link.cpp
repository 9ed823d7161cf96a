// SPDX-License-Identifier: Apache-2.0
#include "shared/link/agent_link.h"

#include <algorithm>
#include <exception>

#include "ground/os/memory.h"
#include "ground/os/self.h"

namespace firebreak::link {
namespace {

constexpr Milliseconds connect_timeout{2000};
/// Pause between two looks whether the next agent is there.
constexpr Milliseconds look_pause{20};

tl::unexpected<Error> agent_is_gone() { return fail(ErrorCode::Unavailable, "the firebreak agent is gone"); }

constexpr const char* agent_is_older =
    "the firebreak agent is older than this program, and its answers cannot be told apart (start one of this "
    "version)";

/// No allocation is called so.
std::string news_of(const std::string& owner) { return owner + "/"; }

std::string_view text_of(const os::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

}  // namespace

Result<std::unique_ptr<AgentLink>> AgentLink::connect(const std::string& socket_path) {
  auto socket = os::connect(socket_path, connect_timeout);
  if (!socket && socket.error().code == ErrorCode::PermissionDenied) {
    return fail(ErrorCode::PermissionDenied, "the firebreak agent at " + socket_path + " is not yours to ask",
                "be a member of the group that owns this socket, or run this as root");
  }
  if (!socket) {
    const ErrorCode why = socket.error().code;
    if (why == ErrorCode::ResourceExhausted) return propagate(socket);
    const bool is_final = why == ErrorCode::NotFound || why == ErrorCode::InvalidArgument;
    return fail(is_final ? why : ErrorCode::Unavailable,
                "no firebreak agent at " + socket_path + ": " + socket.error().message,
                "start firebreakd, or set FIREBREAK_SOCKET to its socket");
  }
  std::unique_ptr<AgentLink> link(new AgentLink(std::move(*socket)));
  auto reader = os::start_thread([raw = link.get()] { raw->read_until_lost(); });
  if (!reader) return propagate(reader);
  link->reader_ = std::move(*reader);
  return link;
}

AgentLink::~AgentLink() {
  hang_up();
  if (reader_.joinable()) reader_.join();  // the thread is missing where none could be had
}

void AgentLink::hang_up() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (socket_) socket_->hang_up();
  }
  changed_.notify_all();
}

void AgentLink::come_back(Return how) {
  if (how.patience <= Milliseconds(0)) return;
  {
    const std::lock_guard lock(mutex_);
    return_ = std::move(how);
    if (!lost_ || closing_) return;
  }
  // The agent has gone since it answered: whoever read has ended, or is about to.
  reader_.join();
  {
    const std::lock_guard lock(mutex_);
    lost_ = false;
  }
  auto reader = os::start_thread([this] { find_next_agent() ? read_until_lost() : be_lost(); });
  if (!reader) return be_lost();
  reader_ = std::move(*reader);
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

void AgentLink::on_away(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_away_ = std::move(callback);
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
  } while (is_to_return() && find_next_agent());
  be_lost();
}

/// False: it is lost, unless somebody says later how to come back.
bool AgentLink::is_to_return() {
  const std::lock_guard lock(mutex_);
  lost_ = closing_ || !return_;
  return !lost_;
}

void AgentLink::be_lost() {
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
  if (const auto callback = copy_of(on_away_)) callback();
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
      ++agents_;
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

/// Messages that arrive before the answer are taken as ever. An agent that is older than this program answers
/// without our number; it cannot be asked.
AgentLink::Welcome AgentLink::present(os::Socket& socket, const abi::Rejoin& words) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++last_number_;
  }
  if (!send(socket, abi::encode(words, number))) return Welcome::Died;
  for (;;) {
    auto received = socket.receive(answer_timeout);
    if (!received) return Welcome::Died;
    const auto letter = abi::decode_letter(text_of(*received));
    const bool is_done = letter && std::holds_alternative<abi::Done>(letter->message);
    if (is_done && letter->number == number) return Welcome::Wanted;
    if (!letter || is_done) return Welcome::Refused;
    if (const auto* refused = std::get_if<abi::Refused>(&letter->message)) {
      const std::lock_guard lock(mutex_);
      refusal_ = refused->reason;
      return Welcome::Refused;
    }
    handle(std::move(*received));
  }
}

void AgentLink::handle(os::Message received) {
  auto letter = abi::decode_letter(text_of(received));
  if (!letter) letter = abi::Letter{abi::number_in(text_of(received)), abi::Refused{letter.error().message}};
  if (letter->number == 0 && is_news(letter->message)) return;
  take_answer(std::move(*letter), std::move(received.descriptors));
}

/// Takes what the agent says unasked.
bool AgentLink::is_news(const abi::Message& message) {
  if (const auto* wanted = std::get_if<abi::Inject>(&message)) {
    inject(*wanted);
  } else if (std::holds_alternative<abi::HandOver>(message)) {
    ask_for_hand_over();
  } else if (const auto* event = std::get_if<abi::Event>(&message)) {
    pass_on(*event);
  } else if (const auto* allocation = std::get_if<abi::Allocation>(&message)) {
    announce(allocation->name);
  } else if (const auto* shared = std::get_if<abi::Shared>(&message)) {
    announce(news_of(shared->owner));
  } else {
    return false;
  }
  return true;
}

void AgentLink::announce(const std::string& what) {
  const std::lock_guard lock(mutex_);
  announced_.insert(what);
  changed_.notify_all();
}

/// Answers that nobody waits for any more are dropped, with their descriptors.
void AgentLink::take_answer(abi::Letter letter, std::vector<os::Fd> descriptors) {
  const std::lock_guard lock(mutex_);
  if (awaited_ == 0 || (letter.number != 0 && letter.number != awaited_)) return;
  const bool is_refusal = std::holds_alternative<abi::Refused>(letter.message);
  if (letter.number == 0 && !is_refusal) letter.message = abi::Refused{agent_is_older};
  awaited_ = 0;
  answer_ = Answer{std::move(letter.message), std::move(descriptors)};
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

Status AgentLink::send(os::Socket& socket, const std::string& text, int descriptor) {
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  return socket.send(std::as_bytes(std::span(text)), descriptors, answer_timeout);
}

Status AgentLink::tell(const abi::Message& message) {
  std::unique_lock lock(mutex_);
  const SharedSocket current = socket_;
  const std::uint64_t number = ++last_number_;  // should it be answered, nobody waits for that
  lock.unlock();
  return current ? send(*current, abi::encode(message, number)) : Status(agent_is_gone());
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
  const std::uint64_t number = ++last_number_;
  const std::string text = abi::encode(message, number);
  do {
    if (auto connected = wait_until_connected(lock, deadline); !connected) return propagate(connected);
    answer_.reset();
    awaited_ = number;
    const SharedSocket current = socket_;
    lock.unlock();
    const Status sent = send(*current, text, descriptor);
    lock.lock();
    if (!sent && !return_) return propagate(sent, "agent");
    // The next agent is asked the same, under the same number.
    changed_.wait_until(lock, deadline, [&] { return answer_.has_value() || lost_ || socket_ != current; });
  } while (!answer_ && !lost_ && std::chrono::steady_clock::now() < deadline);
  awaited_ = 0;
  if (!answer_)
    return lost_ ? agent_is_gone() : fail(ErrorCode::Timeout, "the firebreak agent did not answer");
  Answer answer = std::move(*answer_);
  answer_.reset();
  return as_result(std::move(answer));
}

Result<std::string> AgentLink::status(Milliseconds timeout) {
  auto answer = ask(abi::StatusRequest{}, -1, timeout);
  if (!answer) return propagate(answer);
  auto* report = std::get_if<abi::StatusDocument>(&answer->message);
  if (report == nullptr) return fail(ErrorCode::Protocol, "the agent answered something else");
  if (answer->descriptors.empty()) return std::move(report->json);
  return os::content_of(answer->descriptors.front().get());
}

Result<AgentLink::SharedAllocation> AgentLink::take_allocation(const std::string& name,
                                                               Milliseconds timeout) {
  auto taken = take(abi::GiveAllocation{name}, name, timeout);
  if (taken || taken.error().code != ErrorCode::NotFound) return taken;
  return fail(ErrorCode::NotFound, "the tenant has no allocation '" + name + "'");
}

Result<AgentLink::SharedAllocation> AgentLink::take_shared(const std::string& owner, const std::string& name,
                                                           Milliseconds timeout) {
  auto taken = take(abi::GiveShared{owner, name}, news_of(owner), timeout);
  if (taken || taken.error().code != ErrorCode::NotFound) return taken;
  return fail(ErrorCode::NotFound, "no tenant '" + owner + "' shares its memory");
}

Result<AgentLink::SharedAllocation> AgentLink::take(const abi::Message& question, const std::string& news,
                                                    Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    std::unique_lock lock(mutex_);
    announced_.erase(news);
    const std::uint64_t asked = agents_;
    lock.unlock();
    auto answer = ask(question);
    const bool is_for_ever = timeout < Milliseconds(0);
    if (!answer && answer.error().code == ErrorCode::Timeout && is_for_ever) continue;
    if (!answer) return propagate(answer);
    if (const auto* given = std::get_if<abi::Allocation>(&answer->message)) {
      if (answer->descriptors.size() != 1) return fail(ErrorCode::Protocol, "the agent sent no memory");
      return SharedAllocation{given->address, given->size_bytes, given->memory, given->is_shared,
                              std::move(answer->descriptors.front())};
    }
    lock.lock();
    const auto has_news = [&] { return announced_.contains(news) || agents_ != asked || lost_; };
    if (is_for_ever) {
      changed_.wait(lock, has_news);
    } else if (!changed_.wait_until(lock, deadline, has_news)) {
      return fail(ErrorCode::NotFound, "it is not there");
    }
    if (lost_) return agent_is_gone();
  }
}

}  // namespace firebreak::link
