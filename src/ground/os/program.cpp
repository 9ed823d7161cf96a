// SPDX-License-Identifier: Apache-2.0
#include "ground/os/program.h"

#include <csignal>

#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

constexpr Milliseconds patience_after_kill{1000};

}  // namespace

Result<std::optional<ExitStatus>> wait_for_child(Kernel& kernel, pid_t pid, const Fd& pidfd,
                                                 Milliseconds timeout) {
  const int number = pidfd.get();
  const auto ready = kernel.poll(std::span(&number, 1), timeout);
  if (!ready) return propagate(ready);
  return kernel.try_wait(pid);
}

Status kill_child(Kernel& kernel, pid_t pid, const Fd& pidfd) {
  // The process may have ended by itself in this moment; reaping it is all that is left then.
  static_cast<void>(kernel.send_signal(pidfd, SIGKILL));
  const auto status = wait_for_child(kernel, pid, pidfd, patience_after_kill);
  if (!status) return propagate(status);
  if (!*status)
    return fail(ErrorCode::Timeout, "process " + std::to_string(pid) + " does not die when killed");
  return {};
}

Result<ProgramResult> run_program(Kernel& kernel, SpawnRequest request, std::string_view input,
                                  Milliseconds timeout) {
  const Result<Fd> standard_input = memory_file_with(input);
  if (!standard_input) return propagate(standard_input);
  const Result<Fd> output = memory_file_with("");
  if (!output) return propagate(output);
  request.standard_input = standard_input->get();
  request.standard_output = output->get();
  request.standard_error = output->get();
  request.die_with_parent = true;

  const Result<pid_t> pid = kernel.spawn(request);
  if (!pid) return propagate(pid);
  const Result<Fd> pidfd = kernel.pidfd_open(*pid);
  if (!pidfd) return propagate(pidfd);
  const auto status = wait_for_child(kernel, *pid, *pidfd, timeout);
  if (!status) return propagate(status);
  if (!*status) {
    if (Status killed = kill_child(kernel, *pid, *pidfd); !killed) return propagate(killed);
    return fail(ErrorCode::Timeout,
                request.command.front() + " did not end within " + std::to_string(timeout.count()) + " ms");
  }
  Result<std::string> text = content_of(output->get());
  if (!text) return propagate(text);
  return ProgramResult{**status, std::move(*text)};
}

}  // namespace firebreak::os
