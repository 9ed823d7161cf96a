// SPDX-License-Identifier: Apache-2.0
#include "ground/os/socket_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ground/os/event_loop.h"
#include "ground/os/leave_process.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

constexpr std::string_view ready = "ready";
constexpr Milliseconds for_ever{-1};
constexpr Milliseconds at_once{0};
constexpr Milliseconds end_limit{1'000};

/// Nothing has come, or what nobody understands.
bool is_one_to_drop(const Error& error) {
  return error.code == ErrorCode::Timeout || error.code == ErrorCode::Protocol;
}

}  // namespace

std::string_view text_in(const Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

bool is_socket_for_messages(const Fd& fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

// --- who starts it

Status SocketProcess::start(std::vector<std::string> command, Milliseconds limit,
                            const std::vector<int>& kept, const char* why) {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  SpawnRequest request;
  request.command = std::move(command);
  request.inherited = {{ends->second.fd().get(), socket_descriptor}};
  for (const int each : kept)
    request.inherited.emplace_back(each, socket_descriptor + static_cast<int>(request.inherited.size()));
  request.new_session = true;
  const auto pid = spawn_process(request);
  if (!pid) return propagate(pid);
  (void)ends->second.release();
  auto process = RealKernel().pidfd_open(*pid);
  if (!process) return propagate(process);
  socket_.emplace(std::move(ends->first));
  pid_ = *pid;
  process_ = std::move(*process);
  const auto said = socket_->receive(limit);
  if (said && text_in(*said) == ready) return {};
  (void)RealKernel().send_signal(process_, SIGKILL);  // the process is reaped with this object
  return fail(ErrorCode::Timeout, why);
}

SocketProcess::~SocketProcess() {
  if (!process_) return;
  socket_->hang_up();
  const int number = process_.get();
  (void)poll_readable(std::span(&number, 1), end_limit);
  (void)RealKernel().try_wait(pid_);
}

Status SocketProcess::send(std::string_view text, std::span<const int> attached, Milliseconds limit) {
  const std::lock_guard lock(mutex_);
  return socket_->send(std::as_bytes(std::span(text)), attached, limit);
}

// --- that process

Result<Fd> parent_process() {
  const pid_t parent = ::getppid();
  auto process = RealKernel().pidfd_open(parent);
  if (process && ::getppid() != parent)
    return fail(ErrorCode::NotFound, "who has started this process is gone");
  return process;
}

void SocketServer::serve(const std::function<void(Message message)>& take) {
  if (!starter_ || !asker_.send(std::as_bytes(std::span(ready)), {}, for_ever)) return;
  while (wait_and_reap()) {
    auto message = asker_.receive(at_once);
    if (!message && !is_one_to_drop(message.error())) return;
    if (message) take(std::move(*message));
  }
}

/// False: who has started us is gone. Others may have its end of the socket still.
bool SocketServer::wait_and_reap() {
  std::vector<int> numbers{starter_->get(), asker_.fd().get()};
  for (const Child& each : children_) numbers.push_back(each.process.get());
  const auto readable = poll_readable(numbers, for_ever);
  if (readable && std::ranges::count(*readable, 0U) > 0) return false;
  std::erase_if(children_, [](const Child& each) {
    const auto ended = RealKernel().try_wait(each.pid);
    return !ended || ended->has_value();
  });
  return true;
}

Result<const Fd*> SocketServer::start_child(const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("start a child", errno);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) leave_process_at_once(0);
    children_.clear();
    asker_.release().reset();
    work();
    leave_process_at_once(0);
  }
  // Nobody else reaps it, so the number is its own.
  auto process = RealKernel().pidfd_open(pid);
  if (!process) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return propagate(process);
  }
  children_.push_back({pid, std::move(*process)});
  return &children_.back().process;
}

}  // namespace firebreak::os
