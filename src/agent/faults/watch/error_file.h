// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "agent/faults/watch/line_tail.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// The lines that a process writes to its standard error from now on, where that is a regular file. The file
/// is read alone; a pipe or a terminal, which reading would take from, is not touched.
class ErrorFile {
 public:
  ErrorFile(os::EventLoop& loop, os::Kernel& kernel, pid_t pid, LineTail::OnLine on_line,
            LineTail::OnSkipped on_skipped = {});

  /// Unsupported: it is no regular file.
  Status start();
  /// Reads without waiting to be told that there is something.
  void read_now() { tail_.read_now(); }
  /// Returns another process that uses the GPU and has the same file for its standard error: a line may be of
  /// either.
  std::optional<pid_t> shared_with();

 private:
  os::Kernel& kernel_;
  pid_t pid_;
  os::FileIdentity identity_;
  LineTail tail_;
};

}  // namespace firebreak::watch
