// SPDX-License-Identifier: Apache-2.0
#include "watch/progress_detector.h"

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

ProgressDetector::ProgressDetector(os::EventLoop& loop, const Clock& clock, Target target, Options options,
                                   ReadProgress read, FaultCallback on_fault)
    : loop_(loop),
      clock_(clock),
      target_(std::move(target)),
      options_(options),
      read_(std::move(read)),
      on_fault_(std::move(on_fault)),
      judge_(options.patience) {}

Status ProgressDetector::start() {
  Result<os::Watch> timer =
      loop_.every(options_.patience / std::max(options_.readings, 1), [this] { look(); });
  if (!timer) return propagate(timer, "watch the progress of a process");
  timer_ = std::move(*timer);
  return {};
}

void ProgressDetector::look() {
  const Monotonic now = clock_.now();
  if (!judge_.hangs(now, read_())) return;
  fault::Fault fault;
  fault.when = now;
  fault.kind = "no progress for " +
               std::to_string(std::chrono::duration_cast<Milliseconds>(options_.patience).count()) + " ms";
  set_subject(fault, target_);
  fault.source = fault::FaultSource::Progress;
  on_fault_(fault);
}

}  // namespace firebreak::watch
