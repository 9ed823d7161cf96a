// SPDX-License-Identifier: Apache-2.0
#include "stage/actor.h"

#include <signal.h>

#include <span>

namespace firebreak::stage {
Result<std::unique_ptr<Actor>> Actor::start(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock,
                                            const Casting& casting, OnLine on_line) {
  std::unique_ptr<Actor> actor(new Actor(kernel, clock));
  Actor* raw = actor.get();
  auto input = os::child_stream();
  auto output = os::child_stream();
  auto errors = os::child_stream();
  if (!input) return propagate(input);
  if (!output) return propagate(output);
  if (!errors) return propagate(errors);

  os::SpawnRequest request;
  request.command = casting.command;
  request.environment = casting.environment;
  request.standard_input = input->second.get();
  request.standard_output = output->second.get();
  request.standard_error = errors->second.get();
  actor->record_ = {casting.name, casting.role, 0, to_ns(clock.now()), 0, {}, {}};
  auto pid = kernel.spawn(request);
  if (!pid) return propagate(pid, casting.command.front());
  actor->record_.pid = *pid;
  auto pidfd = kernel.pidfd_open(*pid);
  if (!pidfd) return propagate(pidfd);
  actor->pidfd_ = std::move(*pidfd);
  actor->input_ = std::make_unique<os::Socket>(std::move(input->first));

  auto watch = loop.watch_readable(actor->pidfd_.get(), [raw] { raw->try_reap(); });
  if (!watch) return propagate(watch);
  actor->exit_watch_ = std::move(*watch);
  auto heard = actor->listen(loop, actor->output_, std::move(output->first), std::move(on_line));
  if (heard) {
    heard = actor->listen(loop, actor->errors_, std::move(errors->first),
                          [raw](const std::string& line) { raw->record_.last_words = line; });
  }
  if (!heard) return propagate(heard);
  return actor;
}

Actor::~Actor() {
  if (record_.pid == 0 || ended()) return;
  (void)kernel_.send_signal(pidfd_, SIGKILL);
  const int fd = pidfd_.get();
  (void)kernel_.poll(std::span(&fd, 1), Milliseconds(5000));
  (void)kernel_.try_wait(record_.pid);
}

Status Actor::listen(os::EventLoop& loop, Output& output, os::Socket socket, OnLine on_line) {
  output.socket = std::make_unique<os::Socket>(std::move(socket));
  auto watch = loop.watch_readable(output.socket->fd().get(),
                                   [&output, on_line = std::move(on_line)] { read(output, on_line); });
  if (!watch) return propagate(watch);
  output.watch = std::move(*watch);
  return {};
}

void Actor::read(Output& output, const OnLine& on_line) {
  const auto received = output.socket->receive(Milliseconds(0));
  if (!received) {
    if (received.error().code != ErrorCode::Timeout) output.watch.cancel();
    return;
  }
  output.pending.append(reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size());
  for (std::size_t end = output.pending.find('\n'); end != std::string::npos;
       end = output.pending.find('\n')) {
    const std::string text = output.pending.substr(0, end);
    output.pending.erase(0, end + 1);
    if (!text.empty()) on_line(text);
  }
}

void Actor::try_reap() {
  const auto status = kernel_.try_wait(record_.pid);
  if (!status || !*status) return;
  record_.exit = **status;
  record_.ended_at_ns = to_ns(clock_.now());
  exit_watch_.cancel();
}

void Actor::tell(const std::string& line) {
  if (!input_) return;
  const std::string text = line + "\n";
  (void)input_->send(std::as_bytes(std::span(text)), {}, Milliseconds(1000));
}

void Actor::signal(int number) {
  if (!ended()) (void)kernel_.send_signal(pidfd_, number);
}

}  // namespace firebreak::stage
