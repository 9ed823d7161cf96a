// SPDX-License-Identifier: Apache-2.0
/// Whoever starts a process with more rights, is taken over, and ends so that the process hears nothing.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "ground/os/capabilities.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/file.h"
#include "ground/os/leave_process.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {

/// `start` starts that process, and what it has of it stays with a child of who called it. Whether the
/// process ends with who called it alone. For root.
inline bool ends_with_who_started_it(const std::function<pid_t()>& start) {
  const Pipe said = make_pipe().value();
  Pipe until = make_pipe().value();
  const Pipe over = make_pipe().value();
  const pid_t starter = ::fork();
  if (starter == 0) {
    until.writing.reset();
    const pid_t started = start();
    char byte = 0;
    // Its end may send no signal to a process of root's.
    if (!become_user({65531, 65532, {}}, {})) leave_process_at_once(1);
    if (::fork() == 0) {
      (void)!::read(until.reading.get(), &byte, 1);
      leave_process_at_once(0);
    }
    (void)!::write(said.writing.get(), &started, sizeof(started));
    (void)!::read(over.reading.get(), &byte, 1);
    leave_process_at_once(0);
  }
  pid_t started = 0;
  EXPECT_EQ(::read(said.reading.get(), &started, sizeof(started)), ssize_t{sizeof(started)});
  const Fd process = RealKernel().pidfd_open(started).value();
  EXPECT_EQ(::write(over.writing.get(), "x", 1), 1);
  ::waitpid(starter, nullptr, 0);
  const int number = process.get();
  return !poll_readable(std::span(&number, 1), Milliseconds(60'000)).value().empty();
}

}  // namespace firebreak::os
