// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "agent/faults/watch/line_tail.h"
#include "ground/base/clock.h"
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
  const os::FileIdentity& identity() const { return identity_; }

 private:
  os::Kernel& kernel_;
  pid_t pid_;
  os::FileIdentity identity_;
  LineTail tail_;
};

/// A process that may have written a line of somebody's standard error. It is looked at once a second at
/// most, however many lines and files there are to ask about.
class PossibleWriter {
 public:
  static constexpr Milliseconds between_looks{1000};

  PossibleWriter(os::Kernel& kernel, pid_t pid) : kernel_(&kernel), pid_(pid) {}

  /// True when it uses the GPU and has `file` for its standard error. Also when it is of `user`, whose file
  /// that is, and does not let itself be looked at: others could not open it.
  bool may_write(const os::FileIdentity& file, std::optional<uid_t> user, Monotonic now);
  std::optional<uid_t> user(Monotonic now);

 private:
  void look(Monotonic now);

  os::Kernel* kernel_;
  pid_t pid_;
  std::optional<Monotonic> looked_at_;
  // The following is as it was then.
  std::optional<os::FileIdentity> errors_;
  bool is_hidden_ = false;
  std::optional<bool> uses_gpu_;
  std::optional<std::optional<uid_t>> user_;
};

}  // namespace firebreak::watch
