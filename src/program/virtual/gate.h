// SPDX-License-Identifier: Apache-2.0
/// What the program's calls into the driver pass, and what a flip closes: nobody is inside while the instance
/// behind the calls is changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "ground/base/clock.h"

namespace firebreak::virtual_driver {

/// A thread's own lane through the gate. It outlives its thread, and is another one's then.
struct Lane {
  std::atomic<bool> inside{false};
  std::atomic<bool> has_thread{true};
  std::uint32_t depth = 0;     ///< calls of that thread that are under way; its own
  bool passes_closed = false;  ///< its own
  std::atomic<std::uint32_t> passes{0};
  Lane* next = nullptr;
};

/// Thread safe. One for the process: a thread's lane does not say whose it is.
class Gate {
 public:
  /// Waits while the gate is closed, but in a call that is made within another one.
  void enter() {
    Lane& lane = own_lane();
    if (lane.depth++ > 0) return;
    lane.passes.store(lane.passes.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    while (true) {
      if (cheap_) {
        lane.inside.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // close() has all threads pass a barrier
      } else {
        lane.inside.store(true, std::memory_order_seq_cst);
      }
      if (closed_.load(std::memory_order_seq_cst) == 0 || lane.passes_closed) [[likely]]
        return;
      wait_outside(lane);
    }
  }
  void leave() {
    Lane& lane = own_lane();
    if (--lane.depth == 0) lane.inside.store(false, std::memory_order_release);
  }

  /// Nobody comes in any more, and those inside have left: true. False: somebody is inside still when that
  /// time is over, and that closing is taken back. The calling thread must not be inside. Several may have it
  /// closed at once: it opens when all have opened it.
  bool close(Nanoseconds longest);
  void open();
  /// From now on the calling thread comes in although the gate is closed.
  void let_this_thread_pass() { own_lane().passes_closed = true; }

  /// Whoever is inside now has left once, and may have come in again: true. False: not within that time. The
  /// calling thread must not be inside.
  bool await_those_inside(Nanoseconds longest);

  /// The calling thread has left its calls without an end, by a jump.
  static void forget_own_calls();

  /// In a child of fork(): the parent's other threads are not here.
  void begin_anew();

 private:
  Lane& own_lane();
  void wait_outside(Lane& lane);
  bool is_anybody_inside() const;

  static bool prepare_barrier();
  const bool cheap_ = prepare_barrier();
  std::atomic<std::uint32_t> closed_{0};
};

/// A call that is under way.
class Pass {
 public:
  explicit Pass(Gate& gate) : gate_(gate) { gate_.enter(); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  ~Pass() { gate_.leave(); }

 private:
  Gate& gate_;
};

}  // namespace firebreak::virtual_driver
