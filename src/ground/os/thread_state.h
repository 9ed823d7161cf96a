// SPDX-License-Identifier: Apache-2.0
/// What the C library and Linux know of the calling thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace firebreak::os {

/// From now on pthread_cancel() does not end the calling thread. Returns what was so before.
inline int forbid_cancellation() {
  int before = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

/// What forbid_cancellation() returned holds again. A thread that was cancelled meanwhile ends at its next
/// cancellation point.
inline void restore_cancellation(int before) { ::pthread_setcancelstate(before, nullptr); }

/// True inside a handler of a signal that has a stack of its own.
inline bool is_on_signal_stack() {
  stack_t stack{};
  return ::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace firebreak::os
