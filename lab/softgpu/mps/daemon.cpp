// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mps/daemon.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::softgpu::mps {

namespace {

constexpr Milliseconds io_timeout(1'000);
constexpr Milliseconds server_answer_timeout(4'000);
// NVIDIA's "quit" waits for ever for its clients; this one waits that long and then ends them.
constexpr double quit_wait_seconds = 1;
constexpr double kill_grace_seconds = 1;

Nanoseconds seconds(double value) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(value));
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::create(MpsLog log) {
  const std::string path = control_socket_path();
  if (Status fits = os::check_socket_path(path); !fits) return propagate(fits);
  if (Status made = os::make_directories(pipe_directory()); !made) return propagate(made);
  auto listener = os::Listener::listen(path, os::SocketAccess::Owner);
  if (!listener) return propagate(listener);
  // Clients of every user that the folder lets through, as NVIDIA's.
  if (::chmod(path.c_str(), 0666) != 0) return os::fail_errno("chmod " + path, errno);
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(*loop), std::move(*listener), std::move(log)));
  if (Status watching = daemon->watch_everything(); !watching) return propagate(watching);
  return daemon;
}

Daemon::Daemon(std::unique_ptr<os::EventLoop> loop, os::Listener listener, MpsLog log)
    : loop_(std::move(loop)),
      listener_(std::move(listener)),
      log_(std::move(log)),
      pid_file_(pipe_directory() + "/nvidia-cuda-mps-control.pid") {
  std::ofstream(pid_file_) << os::own_pid() << "\n";
}

Daemon::~Daemon() {
  kill_server();
  std::remove(pid_file_.c_str());
}

Status Daemon::watch_everything() {
  auto signals = loop_->on_signals({SIGTERM, SIGINT, SIGHUP}, [this](int) { quit(std::nullopt, 0); });
  if (!signals) return propagate(signals);
  signal_watch_ = std::move(*signals);
  auto listening = loop_->watch_readable(listener_.fd().get(), [this] { accept(); });
  if (!listening) return propagate(listening);
  listener_watch_ = std::move(*listening);
  return {};
}

void Daemon::run() {
  log_.write("Starting control daemon");
  loop_->run();
  kill_server();
  for (os::Socket& visitor : quit_visitors_) static_cast<void>(send_text(visitor, {}, io_timeout));
  log_.write("Exit");
}

void Daemon::accept() {
  auto socket = listener_.accept(Milliseconds(0));
  if (!socket) return;
  const int number = socket->fd().get();
  auto watch = loop_->watch_readable(number, [this, number] { serve(number); });
  if (watch) visitors_.insert_or_assign(number, Visitor{std::move(*socket), std::move(*watch)});
}

void Daemon::serve(int number) {
  const auto found = visitors_.find(number);
  if (found == visitors_.end()) return;
  Visitor visitor = std::move(found->second);
  visitors_.erase(found);
  visitor.watch.cancel();
  auto received = receive_request(visitor.socket, Milliseconds(0));
  if (!received) return;
  if (received->request.kind == RequestKind::Attach)
    return attach(std::move(visitor.socket), received->descriptors);
  const auto who = visitor.socket.peer_credentials();
  const bool may_ask = who && (who->uid == 0 || who->uid == ::geteuid());
  if (may_ask) answer(std::move(visitor.socket), received->request.text);
}

void Daemon::attach(os::Socket client, const std::vector<os::Fd>& descriptors) {
  const auto who = client.peer_credentials();
  if (who && former_clients_.contains(who->pid)) return loop_->stop();
  if (who) clients_.insert(who->pid);
  const bool refused = quitting_ || !ensure_server();
  std::vector<int> numbers{client.fd().get()};
  for (const os::Fd& descriptor : descriptors) numbers.push_back(descriptor.get());
  if (!refused && send_request_with(server_->channel, {RequestKind::Attach, {}}, numbers, io_timeout)) {
    return;
  }
  static_cast<void>(send_attach_answer(client, {CUDA_ERROR_MPS_SERVER_NOT_READY, 0}, -1, io_timeout));
}

Status Daemon::ensure_server() {
  if (server_) return {};
  auto channel = os::socket_pair();
  if (!channel) return propagate(channel);
  const auto program = os::executable_path();
  if (!program) return propagate(program);
  os::SpawnRequest request;
  request.command = {*program, server_argument};
  request.inherited = {{channel->second.fd().get(), server_descriptor}};
  const auto pid = kernel_.spawn(request);
  if (!pid) return propagate(pid);
  auto pidfd = kernel_.pidfd_open(*pid);
  if (!pidfd) return propagate(pidfd);
  auto watch = loop_->watch_readable(pidfd->get(), [this] { server_ended(); });
  if (!watch) return propagate(watch);
  server_ = ServerProcess{*pid, std::move(*pidfd), std::move(channel->first), std::move(*watch)};
  log_.write(fmt::format("Starting new server {}", *pid));
  return {};
}

void Daemon::server_ended() {
  if (!server_) return;
  log_.write(fmt::format("Server {} exited", server_->pid));
  static_cast<void>(kernel_.try_wait(server_->pid));
  server_.reset();
  if (is_shut_down_) former_clients_.merge(clients_);
  clients_.clear();
  is_shut_down_ = false;
  std::erase_if(former_clients_, [](pid_t pid) { return ::kill(pid, 0) != 0; });
  if (quitting_) loop_->stop();
}

void Daemon::kill_server() {
  if (!server_) return;
  static_cast<void>(kernel_.send_signal(server_->pidfd, SIGKILL));
  const int number = server_->pidfd.get();
  static_cast<void>(kernel_.poll(std::span(&number, 1), io_timeout));
  static_cast<void>(kernel_.try_wait(server_->pid));
  server_.reset();
}

void Daemon::answer(os::Socket visitor, const std::string& command) {
  log_.write("Cmd:" + command);
  std::istringstream words(command);
  std::string verb;
  words >> verb;
  if (verb != "quit") {
    const std::string text = answer_text(verb, words);
    if (!text.empty()) log_.write(text.substr(0, text.find_last_not_of('\n') + 1));
    static_cast<void>(send_text(visitor, text, io_timeout));
    return;
  }
  std::string option;
  double wait_seconds = quit_wait_seconds;
  if (words >> option; option == "-t") words >> wait_seconds;
  quit(std::move(visitor), std::clamp(wait_seconds, 0.0, 3600.0));
}

std::string Daemon::answer_text(const std::string& verb, std::istream& arguments) {
  if (verb == "get_server_list") return server_ ? fmt::format("{}\n", server_->pid) : std::string();
  if (verb == "start_server") {
    const Status started = ensure_server();
    return started ? std::string() : "Error: " + started.error().message + "\n";
  }
  if (verb == "get_client_list" || verb == "get_server_status" || verb == "terminate_client" ||
      verb == "shutdown_server")
    return ask_server(verb, arguments);
  if (verb == "ps") return list_processes();
  return "Unknown command: " + verb + "\n";
}

std::string Daemon::ask_server(const std::string& verb, std::istream& arguments) {
  pid_t pid = 0;
  arguments >> pid;
  if (!server_ || pid != server_->pid) return "Server " + std::to_string(pid) + " not found\n";
  if (verb == "shutdown_server") is_shut_down_ = true;
  std::string rest;
  std::getline(arguments, rest);
  const Status sent = send_request(server_->channel, {RequestKind::Command, verb + rest}, io_timeout);
  const auto text =
      sent ? receive_text(server_->channel, server_answer_timeout) : Result<std::string>(propagate(sent));
  return text ? *text : "Error: " + text.error().message + "\n";
}

std::string Daemon::list_processes() {
  std::string table = "PID       ID    SERVER    DEVICE             NAMESPACE      COMMAND\n";
  if (!server_) return table;
  std::istringstream server_pid(std::to_string(server_->pid));
  std::istringstream clients(ask_server("get_client_list", server_pid));
  pid_t pid = 0;
  for (int id = 0; clients >> pid; ++id) {
    const auto command = kernel_.read_file("/proc/" + std::to_string(pid) + "/comm");
    table += fmt::format("{:<10}{:<6}{:<10}{:<19}{:<15}{}", pid, id, server_->pid, "GPU-66697265", "-",
                         command ? *command : "<unknown>\n");
  }
  return table;
}

void Daemon::quit(std::optional<os::Socket> visitor, double wait_seconds) {
  if (visitor) quit_visitors_.push_back(std::move(*visitor));
  quitting_ = true;
  const std::string command = fmt::format("quit {}", wait_seconds);
  if (!server_ || !send_request(server_->channel, {RequestKind::Command, command}, io_timeout)) {
    loop_->stop();
    return;
  }
  auto timer = loop_->after(seconds(wait_seconds + kill_grace_seconds), [this] { loop_->stop(); });
  if (timer) quit_timer_ = std::move(*timer);
}

}  // namespace firebreak::softgpu::mps
