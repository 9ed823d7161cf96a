// SPDX-License-Identifier: Apache-2.0
/// When the keeper of a spare works: a program makes something new in many of its calls, and must not pay for
/// it with a core.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ground/base/clock.h"

namespace firebreak::virtual_driver {

/// Who works for a tenth of the time rests so much longer than it works.
inline constexpr int rest_for_work = 9;

/// Thread safe.
class News {
 public:
  /// The program has made something. True: the first since begin(), so the keeper is to be woken.
  bool tell() { return !any_.exchange(true); }
  /// The keeper looks at everything now.
  void begin() { any_.store(false, std::memory_order_release); }
  bool is_any() const { return any_.load(); }
  /// How long it rests before it looks at news, once it has worked for so long: it takes a tenth of a core at
  /// most, and what is new waits for 50 ms at most.
  static constexpr Nanoseconds rest_after(Nanoseconds worked) {
    constexpr Nanoseconds longest = std::chrono::milliseconds(50);
    return std::min(worked * rest_for_work, longest);
  }

 private:
  std::atomic<bool> any_{false};
};

/// What the keeper does in the background for something new may be done in the program's own call, too, so
/// that it is done at once: for a tenth of the program's time, no more. Thread safe.
class AtOnce {
 public:
  /// Does it, or leaves it to the keeper. Two threads may both do theirs.
  template <class Do>
  void maybe(const Clock& clock, const Do& act) {
    const Monotonic begin = clock.now();
    if (to_ns(begin) < not_before_ns_.load(std::memory_order_acquire)) return;
    act();
    const Monotonic end = clock.now();
    not_before_ns_.store(to_ns(end + (end - begin) * rest_for_work), std::memory_order_release);
  }

 private:
  std::atomic<std::int64_t> not_before_ns_{0};
};

}  // namespace firebreak::virtual_driver
