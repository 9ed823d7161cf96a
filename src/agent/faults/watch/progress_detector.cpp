// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/progress_detector.h"

#include <algorithm>
#include <utility>

namespace firebreak::watch {

bool ProgressJudge::hangs(Monotonic now, std::optional<std::uint64_t> done) {
  if (!done || done != last_) {
    last_ = done;
    since_ = now;
    told_ = false;
    return false;
  }
  if (told_ || now - since_ < patience_) return false;
  told_ = true;
  return true;
}

/// Its progress is nobody's business until somebody says how to read it.
Status ProgressDetector::follow(const Target& target, Parentage) {
  stop(target.pid);
  return {};
}

Status ProgressDetector::follow_progress(const Target& target, const ReadProgress& read,
                                         const ProgressOptions& options) {
  Result<os::Watch> timer = at_.loop.every(options.patience / std::max(options.readings, 1),
                                           [this, pid = target.pid] { look(pid); });
  if (!timer) return propagate(timer, "watch the progress of a process");
  stop(target.pid);
  processes_.emplace(target.pid, Process{target, read, options.patience, ProgressJudge(options.patience),
                                         std::move(*timer)});
  return {};
}

void ProgressDetector::look(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  const Monotonic now = at_.clock.now();
  if (!process.judge.hangs(now, process.read())) return;
  fault::Fault fault;
  fault.when = now;
  fault.kind = "no progress for " +
               std::to_string(std::chrono::duration_cast<Milliseconds>(process.patience).count()) + " ms";
  set_subject(fault, process.target);
  fault.source = fault::FaultSource::Progress;
  at_.on_fault(fault);
}

}  // namespace firebreak::watch
