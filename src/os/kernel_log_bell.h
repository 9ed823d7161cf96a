// SPDX-License-Identifier: Apache-2.0
/// Rings as soon as the kernel logs a message. poll() on /dev/kmsg does not: it wakes with the timer tick, up
/// to 4 ms later (measured on an H100's host and again here; the kernel defers that wake-up on purpose). The
/// bell is the trace point printk:console, whose wake-up is not deferred: 0.07-0.19 ms from the writer to the
/// reader on a virtual machine with two cores. It costs nothing while nothing is logged.
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "os/memory.h"

namespace firebreak::os {

/// One descriptor a processor. A message may become readable a moment after the bell.
class KernelLogBell {
 public:
  /// PermissionDenied without CAP_PERFMON, Unsupported where the kernel has no such trace point.
  static Result<KernelLogBell> open();
  /// A bell that rings when `fd` is readable; for stand-ins.
  explicit KernelLogBell(Fd fd) { chimes_.push_back({Mapping(), std::move(fd)}); }

  /// Readable when it rang; what waits there is eight bytes that are to be read.
  std::vector<const Fd*> fds() const;

 private:
  struct Chime {
    Mapping samples;  ///< the kernel wakes nobody for a trace point without a buffer
    Fd fd;
  };
  KernelLogBell() = default;

  std::vector<Chime> chimes_;
};

}  // namespace firebreak::os
