// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "watch/target.h"

namespace firebreak::watch {

/// How a watched process ended.
struct ProcessExit {
  pid_t pid = 0;
  std::optional<os::ExitStatus> status;  ///< empty: not known; of a stranger it often is
  bool expected = false;                 ///< expect_exit() was called before
  Monotonic when{};
};

enum class Parentage {
  OurChild,  ///< the detector reaps it and says how it ended; nobody else may reap it
  Stranger,
};

/// Says when a process ends, and that this is a fault unless it was expected.
class ExitDetector {
 public:
  using ExitCallback = std::function<void(const ProcessExit&)>;

  /// `on_fault` is called before `on_exit`, so that what decides on faults has the lead.
  ExitDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
               Parentage parentage, FaultCallback on_fault, ExitCallback on_exit);

  /// NotFound when there is no such process (any more): then nothing is called back.
  Status start();
  /// From now on the end of the process is no fault.
  void expect_exit() { expected_ = true; }

 private:
  void ended();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Target target_;
  Parentage parentage_;
  FaultCallback on_fault_;
  ExitCallback on_exit_;
  bool expected_ = false;
  os::Fd process_;
  os::Watch gone_;
};

}  // namespace firebreak::watch
