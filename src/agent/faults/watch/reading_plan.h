// SPDX-License-Identifier: Apache-2.0
/// The plan of when to read the kernel log although nobody woke us for it.
#pragma once

#include <optional>

#include "ground/base/clock.h"

namespace firebreak::watch {

/// A read of an empty /dev/kmsg costs 0.6 us, but a timer's wake-up of the loop 18-30 us (both measured on a
/// virtual machine with two cores), so what counts is how often we wake: 1 % of a core is 400 times a second.
/// All the time that is affordable for a period of 5 ms only, which is longer than the timer tick that poll()
/// waits for; so nothing is swept while nothing happens, and closely once something does.
struct ReadingRules {
  /// True when a bell rings for each message (os::KernelLogBell): then only the moment until it is readable
  /// has to be bridged, and a suspicion changes nothing.
  bool bell = false;
  /// Pause between two reads while more is expected: about 10 % of a core meanwhile.
  Nanoseconds step = std::chrono::microseconds(200);
  /// How long a message, or the bell, lets us expect another: a fault's lines come within 1-2 ms of each
  /// other.
  Nanoseconds after_message = std::chrono::milliseconds(5);
  /// How long another sign of a fault lets us expect its lines: 91-135 ms after a UVM event were measured.
  Nanoseconds after_suspicion = std::chrono::milliseconds(250);
  /// Period of reads without a bell, also while nothing is expected; 0: never. 500 us cost about 5 % of a
  /// core.
  Nanoseconds idle_period{0};
};

/// Times in, the period of reading out. Pure.
class ReadingPlan {
 public:
  explicit ReadingPlan(const ReadingRules& rules) : rules_(rules) {}

  /// A message was read, or the bell rang.
  void message(Monotonic now) { expect_until(now + rules_.after_message); }
  /// Something else says that a fault is under way.
  void suspicion(Monotonic now) {
    if (!rules_.bell) expect_until(now + rules_.after_suspicion);
  }
  /// How often to read from `now` on; empty: wait until the log wakes us.
  std::optional<Nanoseconds> period(Monotonic now) const {
    if (now < until_) return rules_.step;
    if (rules_.bell || rules_.idle_period.count() == 0) return std::nullopt;
    return rules_.idle_period;
  }

 private:
  void expect_until(Monotonic time) {
    if (time > until_) until_ = time;
  }

  ReadingRules rules_;
  Monotonic until_{};
};

}  // namespace firebreak::watch
