// SPDX-License-Identifier: Apache-2.0
/// Stands in for nvidia-cuda-mps-control in the domain's tests: a daemon with "-f", else a sender of the
/// commands on its standard input. FAKE_MPS_MODE makes it misbehave: "dies", "silent", "ignores-quit",
/// "hangs-on-terminate", "ignores-shutdown" (else a server that is shut down gets a SIGTERM). While it runs,
/// files beside the pipe directory steer it and tell of it: "dies" makes the next daemon do so,
/// "answers/COMMAND", with underscores for spaces, is what a command is answered, and with ".later" what it
/// is answered after that; "commands" lists those that came, "gpu" is CUDA_VISIBLE_DEVICES, and "option" is
/// what followed "-f", of which it knows "-multiuser-server". The server
/// 5000000, whose clients are 601 and 602, is no process: Linux has no such numbers.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"

namespace {

using firebreak::Milliseconds;
using firebreak::os::environment_variable;

constexpr Milliseconds for_ever{-1};

std::string mode() { return environment_variable("FAKE_MPS_MODE").value_or(""); }
std::string pipe_directory() { return environment_variable("CUDA_MPS_PIPE_DIRECTORY").value_or(""); }
std::string socket_path() { return pipe_directory() + "/control"; }
std::string beside(const std::string& name) { return pipe_directory() + "/../" + name; }

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Sleeps until somebody kills this process.
void hang() {
  const std::atomic<std::uint32_t> word{0};
  while (true) firebreak::os::futex_wait(word, 0, std::nullopt);
}

void shut_down(const std::string& server) {
  firebreak::os::RealKernel kernel;
  const auto process = kernel.pidfd_open(std::stoi(server));
  if (process && mode() != "ignores-shutdown") static_cast<void>(kernel.send_signal(*process, SIGTERM));
}

bool is_gone(const std::string& pid) {
  const auto stat = firebreak::os::RealKernel().read_file("/proc/" + pid + "/stat");
  return !stat || !firebreak::os::is_alive(*stat);
}

/// Without those that were shut down and have ended.
std::string servers_of(const std::string& list) {
  std::ifstream file(beside("commands"));
  const std::string commands{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::istringstream servers(list);
  std::string left = "\n";
  for (std::string server; servers >> server;) {
    const bool was_asked = commands.find("shutdown_server " + server + "\n") != std::string::npos;
    if (!was_asked || !is_gone(server)) left += server + "\n";
  }
  return left;
}

std::string answer(const std::string& command) {
  std::string name = command;
  std::replace(name.begin(), name.end(), ' ', '_');
  if (std::ifstream file(beside("answers/" + name)); file) {
    // With a line end at the least: an answer without a byte cannot be sent.
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::rename(beside("answers/" + name + ".later").c_str(), beside("answers/" + name).c_str());
    return text.empty() ? "\n" : text;
  }
  if (command.starts_with("start_server")) return "\n";
  if (command == "get_server_list") return environment_variable("FAKE_MPS_SERVERS").value_or("") + "\n";
  if (command == "get_client_list 5000000") return "601\n602\n";
  if (command.starts_with("get_client_list")) return "Server not found\n";
  if (command == "terminate_client 5000000 601") return "\n";
  if (command.starts_with("terminate_client")) return "Invalid process\n";
  return "Unknown command\n";
}

std::string answer_and_note(const std::string& command) {
  std::ofstream(beside("commands"), std::ios::app) << command << std::endl;
  if (command.starts_with("shutdown_server ")) shut_down(command.substr(command.find(' ') + 1));
  return command == "get_server_list" ? servers_of(answer(command)) : answer(command);
}

void tell_of_itself() {
  std::ofstream(pipe_directory() + "/nvidia-cuda-mps-control.pid") << firebreak::os::own_pid() << std::endl;
  std::ofstream(beside("gpu")) << environment_variable("CUDA_VISIBLE_DEVICES").value_or("") << std::endl;
}

int serve(const std::string& option) {
  std::ofstream(beside("option")) << option << std::endl;
  if (!option.empty() && option != "-multiuser-server") return 1;
  if (mode() == "dies" || std::ifstream(beside("dies"))) {
    std::cerr << "first line\nthe GPU is not there\n";
    return 1;
  }
  if (mode() == "silent") {
    tell_of_itself();
    hang();
  }
  auto listener = firebreak::os::Listener::listen(socket_path(), firebreak::os::SocketAccess::Owner);
  if (!listener) return 2;
  tell_of_itself();
  while (true) {
    auto connection = listener->accept(for_ever);
    if (!connection) continue;
    const auto message = connection->receive(for_ever);
    if (!message) continue;
    const std::string command(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
    const bool quits = command == "quit" && mode() != "ignores-quit";
    if (command.starts_with("terminate_client") && mode() == "hangs-on-terminate") hang();
    static_cast<void>(connection->send(bytes_of(command == "quit" ? "\n" : answer_and_note(command)), {},
                                       Milliseconds(1000)));
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
  return argc > 1 && std::strcmp(argv[1], "-f") == 0 ? serve(argc > 2 ? argv[2] : "") : send_commands();
}
