// SPDX-License-Identifier: Apache-2.0
/// How long a process waits for a processor: what it is late with meanwhile says nothing about it.
#pragma once

#include <sys/types.h>

#include <map>

#include "ground/base/clock.h"
#include "ground/os/kernel.h"

namespace firebreak::os {

/// Begins when it is made. Does not wait for the process.
class ProcessorWait {
 public:
  ProcessorWait(Kernel& kernel, pid_t pid, Monotonic now);

  /// Of its thread that has waited longest, since this began. Not less than before.
  Nanoseconds until(Kernel& kernel, Monotonic now);

 private:
  struct Thread {
    Nanoseconds ran{0};
    Nanoseconds waited{0};   ///< Linux adds what is over
    bool is_known = false;   ///< that was read
    Nanoseconds before{0};   ///< what it had waited when this began
    Nanoseconds goes_on{0};  ///< how long a wait has been seen to go on that Linux has not added yet
  };
  static Thread look(Kernel& kernel, pid_t pid, pid_t thread);

  pid_t pid_;
  Monotonic looked_;
  std::map<pid_t, Thread> threads_;
  Nanoseconds longest_{0};
};

}  // namespace firebreak::os
