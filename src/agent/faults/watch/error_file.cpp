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

void PossibleWriter::look(Monotonic now) {
  if (looked_at_ && now - *looked_at_ < between_looks) return;
  looked_at_ = now;
  const auto identity = os::regular_file_at(*kernel_, error_path_of(pid_));
  errors_ = identity ? std::optional(*identity) : std::nullopt;
  is_hidden_ = !identity && identity.error().code == ErrorCode::Timeout;
  uses_gpu_.reset();
  user_.reset();
}

std::optional<uid_t> PossibleWriter::user(Monotonic now) {
  look(now);
  if (!user_) user_ = user_of(*kernel_, pid_);
  return *user_;
}

bool PossibleWriter::may_write(const os::FileIdentity& file, std::optional<uid_t> user_of_file,
                               Monotonic now) {
  look(now);
  if (is_hidden_) return user_of_file && user(now) == user_of_file;
  if (errors_ != file) return false;
  if (!uses_gpu_) uses_gpu_ = uses_gpu(*kernel_, pid_);
  return *uses_gpu_;
}

}  // namespace firebreak::watch
