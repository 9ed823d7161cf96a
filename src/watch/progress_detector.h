// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "os/event_loop.h"
#include "watch/target.h"

namespace firebreak::watch {

/// How many pieces of work a process's GPU has done; empty while it has none to do.
using ReadProgress = std::function<std::optional<std::uint64_t>()>;

/// Tells from such readings whether a process hangs. Pure.
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
class ProgressDetector {
 public:
  struct Options {
    Nanoseconds patience = std::chrono::seconds(2);
    /// Readings in that time; each wakes us once.
    int readings = 4;
  };

  ProgressDetector(os::EventLoop& loop, const Clock& clock, Target target, Options options, ReadProgress read,
                   FaultCallback on_fault);

  Status start();

 private:
  void look();

  os::EventLoop& loop_;
  const Clock& clock_;
  Target target_;
  Options options_;
  ReadProgress read_;
  FaultCallback on_fault_;
  ProgressJudge judge_;
  os::Watch timer_;
};

}  // namespace firebreak::watch
