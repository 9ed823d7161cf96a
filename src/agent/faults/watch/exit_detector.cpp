// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/exit_detector.h"

#include <utility>

#include "agent/faults/watch/stranger_exit.h"

namespace firebreak::watch {
namespace {

std::string in_words(const std::optional<os::ExitStatus>& status) {
  if (!status) return "process ended";
  if (status->signal != 0) return "killed by signal " + std::to_string(status->signal);
  return "exited with status " + std::to_string(status->exit_code);
}

fault::Fault fault_of(const ProcessExit& exit, const Target& target) {
  fault::Fault fault;
  fault.fault_class = fault::FaultClass::Termination;
  fault.kind = in_words(exit.status);
  fault.conclusive = exit.status && !exit.status->clean();
  set_subject(fault, target);
  fault.when = exit.when;
  fault.source = fault::FaultSource::ProcessExit;
  return fault;
}

}  // namespace

Status ExitDetector::follow(const Target& target, Parentage parentage) {
  Result<os::Fd> pidfd = at_.kernel.pidfd_open(target.pid);
  if (!pidfd) return propagate(pidfd, "watch the end of a process");
  Result<os::Watch> gone = at_.loop.watch_readable(pidfd->get(), [this, pid = target.pid] { ended(pid); });
  if (!gone) return propagate(gone, "watch the end of a process");
  stop(target.pid);
  processes_.emplace(target.pid, Process{target, parentage, std::move(*pidfd), std::move(*gone)});
  return {};
}

void ExitDetector::ended(pid_t pid) {
  ProcessExit exit;
  exit.when = at_.clock.now();
  exit.pid = pid;
  exit.expected = at_.is_expected_to_end(pid);
  auto its = processes_.extract(pid);
  Process& process = its.mapped();
  process.gone.cancel();
  if (process.parentage == Parentage::OurChild) {
    if (const auto status = at_.kernel.try_wait(pid)) exit.status = *status;
  } else {
    exit.status = exit_of_stranger(at_.kernel, process.pidfd, pid);
  }
  process.pidfd.reset();
  at_.on_exit(exit, exit.expected ? std::nullopt : std::optional(fault_of(exit, process.target)));
}

}  // namespace firebreak::watch
