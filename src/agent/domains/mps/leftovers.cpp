// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/leftovers.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include "ground/base/clock.h"
#include "ground/os/processes.h"

namespace firebreak::mps {
namespace {

constexpr const char* pid_file_name = "/nvidia-cuda-mps-control.pid";
/// Linux cuts a process's name there, so that NVIDIA's daemon and its server have one and the same.
constexpr std::size_t longest_process_name = 15;

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (parsed.ec != std::errc{} || pid <= 0) return std::nullopt;
  return pid;
}

std::string process_name(const std::string& program) {
  return program.substr(program.rfind('/') + 1).substr(0, longest_process_name) + "\n";
}

/// The descriptor first: from then on the number means nobody else.
std::optional<Leftover> look_at(os::Kernel& kernel, pid_t pid, const std::string& control_program,
                                const std::string& pipe_directory) {
  auto pidfd = kernel.pidfd_open(pid);
  if (!pidfd) return std::nullopt;
  const auto name = kernel.read_file(os::proc_folder(pid) + "/comm");
  if (!name || *name != process_name(control_program)) return std::nullopt;
  std::string environment = os::environment_of(kernel, pid);
  if (os::variable_in(environment, "CUDA_MPS_PIPE_DIRECTORY") != pipe_directory) return std::nullopt;
  return Leftover{pid, std::move(*pidfd), std::move(environment)};
}

}  // namespace

std::optional<Leftover> find_daemon(os::Kernel& kernel, const std::string& control_program,
                                    const std::string& pipe_directory) {
  const auto text = kernel.read_file(pipe_directory + pid_file_name);
  const auto pid = text ? parse_pid(*text) : std::nullopt;
  if (!pid) return std::nullopt;
  return look_at(kernel, *pid, control_program, pipe_directory);
}

std::vector<Leftover> find_processes(os::Kernel& kernel, const std::string& control_program,
                                     const std::string& pipe_directory) {
  std::vector<Leftover> found;
  for (const pid_t pid : os::all_processes(kernel)) {
    if (auto leftover = look_at(kernel, pid, control_program, pipe_directory)) {
      found.push_back(std::move(*leftover));
    }
  }
  return found;
}

bool has_clients(os::Kernel& kernel, const std::string& control_program, const std::string& pipe_directory) {
  return std::ranges::any_of(os::all_processes(kernel), [&](pid_t pid) {
    const auto name = kernel.read_file(os::proc_folder(pid) + "/comm");
    if (!name || *name == process_name(control_program)) return false;
    const auto environment = kernel.read_memory_file(os::proc_folder(pid) + "/environ");
    // A process that does not let itself be looked at may be a client.
    if (!environment && environment.error().code == ErrorCode::Timeout) return true;
    return os::variable_in(environment.value_or(""), "CUDA_MPS_PIPE_DIRECTORY") == pipe_directory;
  });
}

Status end_all(os::Kernel& kernel, const std::vector<Leftover>& leftovers,
               std::chrono::milliseconds timeout) {
  const SystemClock clock;
  const Monotonic deadline = clock.now() + timeout;
  for (const Leftover& leftover : leftovers) {
    static_cast<void>(kernel.send_signal(leftover.pidfd, SIGKILL));
  }
  for (const Leftover& leftover : leftovers) {
    const int number = leftover.pidfd.get();
    const auto left = std::max(std::chrono::ceil<Milliseconds>(deadline - clock.now()), Milliseconds(0));
    const auto gone = kernel.poll(std::span(&number, 1), left);
    if (!gone || gone->empty()) {
      return fail(ErrorCode::Timeout, "MPS process " + std::to_string(leftover.pid) + " does not end");
    }
  }
  return {};
}

}  // namespace firebreak::mps
