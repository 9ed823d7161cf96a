// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "ground/os/thread_state.h"

namespace firebreak::virtual_driver {

class InsideCall;

/// The calls that a thread is in.
struct CallsOfThread {
  unsigned depth = 0;
  const InsideCall* outermost = nullptr;
  int cancellation_before = 0;
};

/// As long as this is there, the calling thread is in a call into the driver through one of our functions.
/// pthread_cancel() waits for the end of the call: it would unwind frames of ours and of a driver's by
/// another unwinder than theirs. What the thread asks the dynamic linker for meanwhile is the wish of the
/// driver, or of a library between us and the driver, which gets what it asks for.
class InsideCall {
 public:
  InsideCall() {
    CallsOfThread& calls = calls_;
    if (calls.depth != 0 && was_left(calls, this)) [[unlikely]]
      forget(calls);
    if (calls.depth++ != 0) return;
    mark_ = mark_of(this);
    calls.outermost = this;
    calls.cancellation_before = os::forbid_cancellation();
  }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;
  ~InsideCall() {
    CallsOfThread& calls = calls_;
    if (--calls.depth != 0) return;
    mark_ = 0;
    os::restore_cancellation(calls.cancellation_before);
    if (ending_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      stand_where_it_ends();
  }

  static bool active() {
    const CallsOfThread& calls = calls_;
    return calls.depth != 0 && !was_left(calls, __builtin_frame_address(0));
  }

  /// From now on no thread of this process comes back from a call: SIGTERM, which has its default by now, is
  /// on its way, and what the driver answers meanwhile is no answer for the program. As signal handlers may.
  static void end_inside_calls(pid_t process) { ending_.store(process, std::memory_order_relaxed); }
  /// Stands still until that SIGTERM comes. As signal handlers may.
  [[noreturn]] static void stand_until_ended();

 private:
  /// A handler of a signal may leave the call by siglongjmp(). Then the frame of the call is no caller's of
  /// `here`, or something else stands there.
  static bool was_left(const CallsOfThread& calls, const void* here) {
    const auto outermost = reinterpret_cast<std::uintptr_t>(calls.outermost);
    const bool is_below = outermost < reinterpret_cast<std::uintptr_t>(here);
    if (!is_below && calls.outermost->mark_ == mark_of(calls.outermost)) [[likely]]
      return false;
    return !os::is_on_signal_stack();
  }
  static std::uintptr_t mark_of(const InsideCall* call) {
    constexpr std::uintptr_t pattern = 0x9d3fb5a17c2e6481;
    return reinterpret_cast<std::uintptr_t>(call) ^ pattern;
  }
  static void forget(CallsOfThread& calls);
  static void stand_where_it_ends();

  volatile std::uintptr_t mark_ = 0;
  static inline constinit thread_local CallsOfThread calls_{};
  static inline constinit std::atomic<pid_t> ending_{
      0};  ///< the process that ends; a child of fork() does not
};

}  // namespace firebreak::virtual_driver
