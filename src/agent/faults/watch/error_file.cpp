// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/error_file.h"

#include <string>
#include <utility>

#include "agent/faults/watch/process_scan.h"
#include "ground/os/processes.h"

namespace firebreak::watch {
namespace {

std::string error_path_of(pid_t pid) { return "/proc/" + std::to_string(pid) + "/fd/2"; }

std::optional<uid_t> user_of(os::Kernel& kernel, pid_t pid) {
  return os::user_in(kernel.read_file(os::proc_folder(pid) + "/status").value_or(""));
}

}  // namespace

ErrorFile::ErrorFile(os::EventLoop& loop, os::Kernel& kernel, pid_t pid, LineTail::OnLine on_line,
                     LineTail::OnSkipped on_skipped)
    : kernel_(kernel), pid_(pid), tail_(loop, kernel, std::move(on_line), std::move(on_skipped)) {}

Status ErrorFile::start() {
  const auto identity = os::regular_file_at(kernel_, error_path_of(pid_));
  if (!identity) return propagate(identity);
  identity_ = *identity;
  return tail_.follow_file(error_path_of(pid_));
}

std::optional<pid_t> ErrorFile::shared_with() {
  const auto user = user_of(kernel_, pid_);
  for (const pid_t pid : os::all_processes(kernel_)) {
    if (pid == pid_) continue;
    const auto identity = os::regular_file_at(kernel_, error_path_of(pid));
    if (identity && *identity == identity_ && uses_gpu(kernel_, pid)) return pid;
    // One of the same user that does not let itself be looked at may be one. Others' could not open it.
    const bool is_not_answered = !identity && identity.error().code == ErrorCode::Timeout;
    if (is_not_answered && user && user_of(kernel_, pid) == user) return pid;
  }
  return std::nullopt;
}

}  // namespace firebreak::watch
