// SPDX-License-Identifier: Apache-2.0
/// nvidia-cuda-mps-control for the software GPU: "-d" starts the daemon in the background, "-f" in the
/// foreground, "-multiuser-server" after it is what it does anyway; without an option the lines on standard
/// input are commands for the daemon that runs.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "softgpu/mps/daemon.h"
#include "softgpu/mps/server.h"

namespace {

using namespace firebreak;
using namespace firebreak::softgpu;

constexpr Milliseconds connect_timeout(2'000);
constexpr Milliseconds daemon_start_timeout(10'000);
// A "quit -t N" is answered after N seconds.
constexpr Milliseconds answer_timeout(3'700'000);

int complain(const Error& error) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
  return 1;
}

bool daemon_listens() { return os::connect(mps::control_socket_path(), connect_timeout).has_value(); }

/// It listens before it has written its pid file; once it answers, everything of it is there.
bool daemon_serves() {
  auto socket = os::connect(mps::control_socket_path(), connect_timeout);
  return socket &&
         mps::send_request(*socket, {mps::RequestKind::Command, "get_server_list"}, connect_timeout) &&
         mps::receive_text(*socket, connect_timeout);
}

int run_daemon(mps::MpsLog log) {
  if (daemon_listens()) {
    std::fprintf(stderr, "An instance of this daemon is already running\n");
    return 1;
  }
  auto daemon = mps::Daemon::create(std::move(log));
  if (!daemon) return complain(daemon.error());
  (*daemon)->run();
  return 0;
}

int run_in_background() {
  if (daemon_listens()) {
    std::fprintf(stderr, "An instance of this daemon is already running\n");
    return 1;
  }
  os::RealKernel kernel;
  const auto program = os::executable_path();
  const auto null_device = kernel.open("/dev/null", 1);
  if (!program || !null_device) return 1;
  os::SpawnRequest request;
  request.command = {*program, mps::background_argument};
  request.standard_output = null_device->get();
  request.standard_error = null_device->get();
  request.new_session = true;
  request.die_with_parent = false;
  const auto pid = kernel.spawn(request);
  if (!pid) return complain(pid.error());
  const auto deadline = std::chrono::steady_clock::now() + daemon_start_timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    if (daemon_serves()) return 0;
    const auto ended = kernel.try_wait(*pid);
    if (!ended || ended->has_value()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::fprintf(stderr, "Cannot start the MPS control daemon in %s\n", mps::pipe_directory().c_str());
  return 1;
}

int run_server() {
  auto server = mps::Server::create(os::Socket(os::Fd(mps::server_descriptor)));
  if (!server) return complain(server.error());
  (*server)->run();
  return 0;
}

int send_commands() {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto socket = os::connect(mps::control_socket_path(), connect_timeout);
    if (!socket) {
      std::printf("Cannot find MPS control daemon process\n");
      return 1;
    }
    if (const Status sent = mps::send_request(*socket, {mps::RequestKind::Command, line}, connect_timeout);
        !sent) {
      return complain(sent.error());
    }
    const auto answer = mps::receive_text(*socket, answer_timeout);
    if (!answer) return complain(answer.error());
    std::printf("%s", answer->c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string_view option = argument_count > 1 ? arguments[1] : "";
  if (option == "-d") return run_in_background();
  if (option == "-f") return run_daemon(mps::MpsLog::on_standard_output("Control"));
  if (option == mps::background_argument) return run_daemon(mps::MpsLog("control.log", "Control"));
  if (option == mps::server_argument) return run_server();
  if (option.empty()) return send_commands();
  std::fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f] [-multiuser-server]\n");
  return 1;
}
