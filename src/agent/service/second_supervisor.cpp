// SPDX-License-Identifier: Apache-2.0
#include "agent/service/second_supervisor.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <span>
#include <utility>

#include "ground/os/closer.h"

namespace firebreak::agent {
namespace {

// The first byte says what the rest, a name, is for.
constexpr char is_kept = 'k', is_dropped = 'd', is_over = 'e';

}  // namespace

void SecondSupervisor::start() {
  if (command_.empty()) return;
  if (const Status started = try_to_start(); !started)
    spdlog::error("nobody would take the supervisor's place if it were killed: {}",
                  to_string(started.error()));
}

Status SecondSupervisor::try_to_start() {
  auto ends = os::socket_pair();
  if (!ends) return propagate(ends);
  os::SpawnRequest request;
  request.command = command_;
  request.inherited = {{ends->second.fd().get(), socket_descriptor}};
  request.new_session = true;
  request.die_with_parent = false;
  const auto pid = kernel_.spawn(request);
  if (!pid) return propagate(pid);
  pid_ = *pid;
  started_ = SystemClock().now();
  auto pidfd = kernel_.pidfd_open(pid_);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  socket_.emplace(std::move(ends->first));
  auto exit = loop_.watch_readable(pidfd_.get(), [this] { replace(); });
  if (!exit) return propagate(exit);
  exit_ = std::move(*exit);
  for (const auto& [name, descriptor] : kept_) keep(name, descriptor);
  return {};
}

void SecondSupervisor::keep(const std::string& name, const os::Fd& descriptor) {
  tell(is_kept + name, &descriptor);
}

void SecondSupervisor::drop(const std::string& name) { tell(is_dropped + name); }

void SecondSupervisor::end() {
  exit_.cancel();
  again_.cancel();
  tell(std::string(1, is_over));
  socket_.reset();
}

/// One that does not read is as good as none: it is killed, and the next one is told all.
bool SecondSupervisor::tell(std::string_view text, const os::Fd* descriptor) {
  constexpr Milliseconds patience{1'000};
  if (!socket_) return false;
  const int number = descriptor == nullptr ? -1 : descriptor->get();
  const std::span<const int> attached(&number, descriptor == nullptr ? 0 : 1);
  if (socket_->send(std::as_bytes(std::span(text)), attached, patience)) return true;
  (void)kernel_.send_signal(pidfd_, SIGKILL);
  socket_.reset();
  return false;
}

void SecondSupervisor::replace() {
  exit_.cancel();
  socket_.reset();
  (void)kernel_.try_wait(pid_);
  again_ = loop_.after_or_now(backoff_.after_failure(SystemClock().now() - started_), [this] { start(); });
}

std::optional<KeptDescriptors> wait_to_be_needed(os::Socket& supervisor) {
  supervisor.close_by(std::make_shared<os::Closer>());
  KeptDescriptors kept;
  for (;;) {
    auto received = supervisor.receive(Milliseconds(-1));
    if (!received && received.error().code == ErrorCode::Unavailable) return kept;
    if (!received || received->bytes.empty()) continue;  // a descriptor that did not come is kept by nobody
    const std::string text(reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size());
    const std::string name = text.substr(1);
    if (text.front() == is_over) return std::nullopt;
    if (text.front() == is_dropped) kept.erase(name);
    if (text.front() == is_kept && received->descriptors.size() == 1)
      kept.insert_or_assign(name, std::move(received->descriptors.front()));
  }
}

}  // namespace firebreak::agent
