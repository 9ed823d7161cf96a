// SPDX-License-Identifier: Apache-2.0
/// Stands in for nvidia-cuda-mps-control in the domain's tests: a daemon with "-f", else a sender of the
/// commands on its standard input. FAKE_MPS_MODE makes it misbehave: "dies", "silent", "ignores-quit",
/// "hangs-on-terminate".
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "os/futex.h"
#include "os/self.h"
#include "os/socket.h"

namespace {

using firebreak::Milliseconds;
using firebreak::os::environment_variable;

constexpr Milliseconds for_ever{-1};

std::string mode() { return environment_variable("FAKE_MPS_MODE").value_or(""); }
std::string socket_path() {
  return environment_variable("CUDA_MPS_PIPE_DIRECTORY").value_or("") + "/control";
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Sleeps until somebody kills this process.
void hang() {
  const std::atomic<std::uint32_t> word{0};
  while (true) firebreak::os::futex_wait(word, 0, std::nullopt);
}

std::string answer(const std::string& command) {
  if (command == "get_server_list") return environment_variable("FAKE_MPS_SERVERS").value_or("") + "\n";
  if (command == "get_client_list 500") return "601\n602\n";
  if (command.starts_with("get_client_list")) return "Server not found\n";
  if (command == "terminate_client 500 601") return "\n";
  if (command.starts_with("terminate_client")) return "Invalid process\n";
  return "Unknown command\n";
}

int serve() {
  if (mode() == "dies") {
    std::cerr << "first line\nthe GPU is not there\n";
    return 1;
  }
  if (mode() == "silent") hang();
  auto listener = firebreak::os::Listener::listen(socket_path(), firebreak::os::SocketAccess::Owner);
  if (!listener) return 2;
  while (true) {
    auto connection = listener->accept(for_ever);
    if (!connection) continue;
    const auto message = connection->receive(for_ever);
    if (!message) continue;
    const std::string command(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
    const bool quits = command == "quit" && mode() != "ignores-quit";
    if (command.starts_with("terminate_client") && mode() == "hangs-on-terminate") hang();
    static_cast<void>(
        connection->send(bytes_of(command == "quit" ? "\n" : answer(command)), {}, Milliseconds(1000)));
    if (quits) return 0;
  }
}

int send_commands() {
  std::string command;
  while (std::getline(std::cin, command)) {
    auto connection = firebreak::os::connect(socket_path(), Milliseconds(1000));
    if (!connection) {
      std::cout << "Cannot find MPS control daemon process\n";
      return 1;
    }
    if (!connection->send(bytes_of(command), {}, Milliseconds(1000))) return 1;
    const auto reply = connection->receive(for_ever);
    if (!reply) return 1;
    std::cout << std::string(reinterpret_cast<const char*>(reply->bytes.data()), reply->bytes.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 && std::strcmp(argv[1], "-f") == 0 ? serve() : send_commands();
}
