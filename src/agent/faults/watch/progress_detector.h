// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "agent/faults/watch/detector.h"

namespace firebreak::watch {

/// Tells from readings whether a process hangs. Pure.
class ProgressJudge {
 public:
  explicit ProgressJudge(Nanoseconds patience) : patience_(patience) {}

  /// True once for each standstill: work is in flight, and for `patience` none was done.
  bool hangs(Monotonic now, std::optional<std::uint64_t> done);

 private:
  Nanoseconds patience_;
  std::optional<std::uint64_t> last_;
  Monotonic since_{};
  bool told_ = false;
};

/// Reports a process whose work stands still. A hint and no proof: its GPU may wait for another's.
class ProgressDetector final : public Detector {
 public:
  explicit ProgressDetector(const Workplace& workplace) : at_(workplace) {}

  Status follow(const Target& target, Parentage parentage) override;
  Status follow_progress(const Target& target, const ReadProgress& read,
                         const ProgressOptions& options) override;
  void stop(pid_t pid) override { processes_.erase(pid); }

 private:
  struct Process {
    Target target;
    ReadProgress read;
    Nanoseconds patience;
    ProgressJudge judge;
    os::Watch timer;
  };

  void look(pid_t pid);

  const Workplace& at_;
  std::map<pid_t, Process> processes_;
};

}  // namespace firebreak::watch
