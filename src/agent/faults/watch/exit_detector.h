// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "agent/faults/watch/detector.h"

namespace firebreak::watch {

/// Says when a process ends, and that this is a fault unless it was expected.
class ExitDetector final : public Detector {
 public:
  explicit ExitDetector(const Workplace& workplace) : at_(workplace) {}

  /// NotFound when there is no such process (any more): then nothing is called back.
  Status follow(const Target& target, Parentage parentage) override;
  void stop(pid_t pid) override { processes_.erase(pid); }

 private:
  struct Process {
    Target target;
    Parentage parentage = Parentage::Stranger;
    os::Fd pidfd;
    os::Watch gone;
  };

  void ended(pid_t pid);

  const Workplace& at_;
  std::map<pid_t, Process> processes_;
};

}  // namespace firebreak::watch
