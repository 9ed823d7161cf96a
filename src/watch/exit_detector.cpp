// SPDX-License-Identifier: Apache-2.0
#include "watch/exit_detector.h"

#include <utility>

#include "watch/stranger_exit.h"

namespace firebreak::watch {
namespace {

std::string in_words(const std::optional<os::ExitStatus>& status) {
  if (!status) return "process ended";
  if (status->signal != 0) return "killed by signal " + std::to_string(status->signal);
  return "exited with status " + std::to_string(status->exit_code);
}

}  // namespace

ExitDetector::ExitDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
                           Parentage parentage, FaultCallback on_fault, ExitCallback on_exit)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      target_(std::move(target)),
      parentage_(parentage),
      on_fault_(std::move(on_fault)),
      on_exit_(std::move(on_exit)) {}

Status ExitDetector::start() {
  Result<os::Fd> process = kernel_.pidfd_open(target_.pid);
  if (!process) return propagate(process, "watch the end of a process");
  process_ = std::move(*process);
  Result<os::Watch> gone = loop_.watch_readable(process_.get(), [this] { ended(); });
  if (!gone) return propagate(gone, "watch the end of a process");
  gone_ = std::move(*gone);
  return {};
}

void ExitDetector::ended() {
  ProcessExit exit;
  exit.when = clock_.now();
  gone_.cancel();
  exit.pid = target_.pid;
  exit.expected = expected_;
  if (parentage_ == Parentage::OurChild) {
    if (const auto status = kernel_.try_wait(target_.pid)) exit.status = *status;
  } else {
    exit.status = exit_of_stranger(kernel_, process_, target_.pid);
  }
  process_.reset();
  if (!expected_) {
    fault::Fault fault;
    fault.fault_class = fault::FaultClass::Termination;
    fault.kind = in_words(exit.status);
    fault.conclusive = exit.status && !exit.status->clean();
    set_subject(fault, target_);
    fault.when = exit.when;
    fault.source = fault::FaultSource::ProcessExit;
    on_fault_(fault);
  }
  on_exit_(exit);
}

}  // namespace firebreak::watch
