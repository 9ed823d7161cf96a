// SPDX-License-Identifier: Apache-2.0
#include "inject/process_end.h"

#include <signal.h>

#include <string>

#include "ground/os/become.h"
#include "ground/os/self.h"

namespace firebreak::inject {
namespace {

/// A signal's action may be delayed until the sender sleeps; this is how long it gets.
constexpr std::chrono::milliseconds signal_limit{1000};

/// Status of a process that leaves by itself: nobody takes it for one that did its work.
constexpr int left_status = 3;

void signal_self(os::Kernel& kernel, int signal) {
  os::forget_signal_handler(signal);
  const auto self = kernel.pidfd_open(os::own_pid());
  if (self && kernel.send_signal(*self, signal)) (void)kernel.poll({}, signal_limit);
}

}  // namespace

void end_process(os::Kernel& kernel, Ending ending) {
  switch (ending) {
    case Ending::Kill:
      return signal_self(kernel, SIGKILL);
    case Ending::Terminate:
      return signal_self(kernel, SIGTERM);
    case Ending::SegmentationFault:
      return signal_self(kernel, SIGSEGV);
    case Ending::Exit:
      return os::leave_process(left_status);
    case Ending::Exec:
      // A second, to see what becomes of the kernel before the process is gone.
      (void)os::become_program("/bin/sh", {"sh", "-c", "sleep 1; exit " + std::to_string(left_status)}, {});
      return;
  }
}

}  // namespace firebreak::inject
