// SPDX-License-Identifier: Apache-2.0
#include "agent/service/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/service/service_manager.h"
#include "agent/service/shelves.h"
#include "ground/os/closer.h"

namespace firebreak::agent {
namespace {

constexpr int first_descriptor = 3;  // sd_listen_fds(3)
constexpr int signal_status = 128;

}  // namespace

std::string value_in(const std::string& state, const std::string& name) {
  const std::string wanted = name + "=";
  for (std::size_t at = 0; at < state.size();) {
    const std::size_t end = std::min(state.find('\n', at), state.size());
    if (state.compare(at, wanted.size(), wanted) == 0) {
      return state.substr(at + wanted.size(), end - at - wanted.size());
    }
    at = end + 1;
  }
  return {};
}

bool may_be_a_name(const std::string& name) {
  constexpr std::size_t longest = 255;
  const auto may_be_in_it = [](char c) { return c > ' ' && c <= '~' && c != ':'; };
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, may_be_in_it);
}

Result<std::unique_ptr<Supervisor>> Supervisor::create(os::Kernel& kernel, std::vector<std::string> command,
                                                       std::string notify_path, Nanoseconds silence,
                                                       std::vector<std::string> second,
                                                       std::optional<KeptDescriptors> kept) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  auto notify = os::bind_datagrams(notify_path);
  if (!notify) return propagate(notify);
  if (auto asked = notify->ask_who_sends(); !asked) return propagate(asked);
  notify->close_by(std::make_shared<os::Closer>());
  std::unique_ptr<Supervisor> made(new Supervisor(kernel, std::move(command), std::move(notify_path), silence,
                                                  std::move(second), std::move(*loop), std::move(*notify)));
  Supervisor* raw = made.get();
  made->was_ready_ = kept.has_value();
  if (kept) made->kept_ = std::move(*kept);
  auto signals =
      raw->loop_->on_signals({SIGTERM, SIGINT, SIGHUP}, [raw](int number) { raw->pass_on(number); });
  if (!signals) return propagate(signals);
  made->signals_ = std::move(*signals);
  auto heard = raw->loop_->watch_readable(raw->notify_.fd().get(), [raw] { raw->hear(); });
  if (!heard) return propagate(heard);
  made->heard_ = std::move(*heard);
  if (!made->watchdog_.is_on()) return made;
  auto looks = raw->loop_->every(made->watchdog_.between_looks(), [raw] { raw->look(); });
  if (!looks) return propagate(looks);
  made->looks_ = std::move(*looks);
  return made;
}

Supervisor::~Supervisor() { ::unlink(notify_path_.c_str()); }

Result<int> Supervisor::run() {
  second_.start();
  const Status started = start();
  if (started) loop_->run();
  second_.end();
  if (!started) return propagate(started);
  // Nothing of ours is left behind.
  for (auto& [name, descriptor] : kept_) {
    if (is_shelf(name)) end_shelf(os::Socket(std::move(descriptor)));
  }
  return status_;
}

Status Supervisor::start() {
  const auto pid = kernel_.spawn(request());
  if (!pid) return propagate(pid);
  pid_ = *pid;
  started_ = SystemClock().now();
  watchdog_.started();
  auto pidfd = kernel_.pidfd_open(pid_);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  auto exit = loop_->watch_readable(pidfd_.get(), [this] { ended(); });
  if (!exit) return propagate(exit);
  exit_ = std::move(*exit);
  return {};
}

/// The shell knows the number of the process that it becomes, which the agent wants to see in LISTEN_PID
/// and WATCHDOG_PID.
os::SpawnRequest Supervisor::request() const {
  os::SpawnRequest request;
  request.command = {"/bin/sh", "-c", "LISTEN_PID=$$ WATCHDOG_PID=$$ exec \"$@\"", "sh"};
  request.command.insert(request.command.end(), command_.begin(), command_.end());
  std::vector<std::string> names;
  for (const auto& [name, descriptor] : kept_) {
    request.inherited.emplace_back(descriptor.get(), first_descriptor + static_cast<int>(names.size()));
    names.push_back(name);
  }
  // 0: it gives no signs, also where somebody else wants ours.
  const auto limit_us = std::chrono::duration_cast<std::chrono::microseconds>(silence_).count();
  request.environment = {{"NOTIFY_SOCKET", notify_path_},
                         {"LISTEN_FDS", std::to_string(names.size())},
                         {"LISTEN_FDNAMES", fmt::format("{}", fmt::join(names, ":"))},
                         {"WATCHDOG_USEC", std::to_string(limit_us)}};
  return request;
}

void Supervisor::hear() {
  while (hear_one()) {
  }
}

bool Supervisor::hear_one() {
  auto received = notify_.receive(Milliseconds(0));
  if (!received) return false;
  // Processes that an agent before has left behind say nothing here.
  if (received->sender != pid_) return true;
  const std::string state(reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size());
  const std::string name = value_in(state, "FDNAME");
  if (value_in(state, "READY") == "1") was_ready_ = true;
  hear_of_life(state);
  if (value_in(state, "FDSTOREREMOVE") == "1" && kept_.erase(name) > 0) second_.drop(name);
  if (value_in(state, "FDSTORE") == "1" && received->descriptors.size() == 1)
    keep(name, std::move(received->descriptors.front()));
  return true;
}

void Supervisor::keep(const std::string& name, os::Fd descriptor) {
  if (!may_be_a_name(name)) return spdlog::error("a descriptor is not kept: that is no name for one");
  if (!has_room_for(name)) return spdlog::error("{} is not kept: {} descriptors are", name, kept_.size());
  second_.keep(name, descriptor);
  kept_.insert_or_assign(name, std::move(descriptor));
}

void Supervisor::hear_of_life(const std::string& state) {
  const Monotonic now = SystemClock().now();
  if (value_in(state, "READY") == "1") watchdog_.came_up(now);
  if (value_in(state, "WATCHDOG") == "1") watchdog_.note_sign(now);
  if (value_in(state, "WATCHDOG_USEC") == "0") watchdog_.signs_end();
}

/// Words that it said before count, however late we are. One that hangs is killed as others kill it: it
/// writes nothing down, and what is kept is what it has kept so far.
void Supervisor::look() {
  hear();
  if (!watchdog_.hangs(SystemClock().now())) return;
  spdlog::error("the agent, process {}, hangs: no sign of life for {} ms; it is killed", pid_,
                std::chrono::duration_cast<Milliseconds>(watchdog_.limit()).count());
  watchdog_.gives_up();
  if (auto sent = kernel_.send_signal(pidfd_, SIGKILL); !sent)
    spdlog::error("cannot kill it: {}", to_string(sent.error()));
}

bool Supervisor::has_room_for(const std::string& name) const {
  if (kept_.contains(name)) return true;
  std::size_t bytes = name.size() + 1;
  for (const auto& [other, descriptor] : kept_) bytes += other.size() + 1;
  return kept_.size() < descriptors_max && bytes <= names_bytes_max;
}

/// The last words of the agent count as well.
void Supervisor::ended() {
  hear();
  watchdog_.signs_end();
  exit_.cancel();
  const auto reaped = kernel_.try_wait(pid_);
  const os::ExitStatus exit = reaped && *reaped ? **reaped : os::ExitStatus{};
  status_ = exit.signal != 0 ? signal_status + exit.signal : exit.exit_code;
  const bool has_handed_over = status_ == handed_over_status;
  if (ending_ || status_ == 0 || (!was_ready_ && !has_handed_over)) return loop_->stop();
  const Milliseconds pause =
      has_handed_over ? Milliseconds(0) : backoff_.after_failure(SystemClock().now() - started_);
  spdlog::warn("the agent, process {}, ended with {}; again in {} ms, with {} descriptors that were kept",
               pid_, status_, pause.count(), kept_.size());
  restart_ = loop_->after_or_now(pause, [this] {
    if (auto started = start(); started) return;
    status_ = 1;
    loop_->stop();
  });
}

void Supervisor::pass_on(int signal) {
  ending_ = true;
  if (!kernel_.send_signal(pidfd_, signal)) loop_->stop();
}

}  // namespace firebreak::agent
