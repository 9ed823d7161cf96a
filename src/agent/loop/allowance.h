// SPDX-License-Identifier: Apache-2.0
/// How much of the loop's time one user's requests may take.
#pragma once

#include <algorithm>
#include <chrono>

#include "ground/base/clock.h"

namespace firebreak::agent {

struct AllowanceLimits {
  double share = 0.1;  ///< share in the long run
  Nanoseconds at_once = std::chrono::milliseconds(200);
  /// Longest wait of who has taken more: what took long may have done so for no fault of its own.
  Nanoseconds longest_wait = std::chrono::seconds(1);
};

/// Pure.
class Allowance {
 public:
  explicit Allowance(const AllowanceLimits& limits) : limits_(limits) {}

  void spend(Nanoseconds time, Monotonic now) {
    used_ = std::min(used(now) + time, limits_.at_once + share_of(limits_.longest_wait));
    at_ = now;
  }
  /// Zero: it may have more now.
  Nanoseconds wait(Monotonic now) const {
    const Nanoseconds over = used(now) - limits_.at_once;
    if (over <= Nanoseconds(0)) return Nanoseconds(0);
    return std::chrono::ceil<Nanoseconds>(std::chrono::duration<double, std::nano>(over) / limits_.share);
  }
  bool is_whole(Monotonic now) const { return used(now) == Nanoseconds(0); }

 private:
  Nanoseconds share_of(Nanoseconds time) const {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double, std::nano>(time) *
                                                   limits_.share);
  }
  Nanoseconds used(Monotonic now) const { return std::max(Nanoseconds(0), used_ - share_of(now - at_)); }

  AllowanceLimits limits_;
  Nanoseconds used_{0};
  Monotonic at_{};
};

}  // namespace firebreak::agent
