// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ground/base/clock.h"

namespace firebreak::workloads {

/// Gives every step a minimum duration. A step that took longer is not made up for by shorter ones.
class Pacer {
 public:
  explicit Pacer(Nanoseconds minimum) : minimum_(minimum) {}

  /// Gives the moment when the next step may begin, if the one before began as this function said, and it is
  /// `now`.
  Monotonic next_begin(Monotonic now) {
    last_begin_ = started_ && last_begin_ + minimum_ > now ? last_begin_ + minimum_ : now;
    started_ = true;
    return last_begin_;
  }

 private:
  Nanoseconds minimum_;
  Monotonic last_begin_{};
  bool started_ = false;
};

}  // namespace firebreak::workloads
