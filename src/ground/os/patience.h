// SPDX-License-Identifier: Apache-2.0
/// How long somebody may be kept waiting by others in all, however many they are. Pure.
#pragma once

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::os {

/// A reserve of time that waiting uses up. It comes back at a tenth of the time that passes.
class Patience {
 public:
  explicit Patience(Nanoseconds reserve) : reserve_(reserve), left_(reserve) {}

  /// Returns the time for the next look: half of what is left, so that there is something left for whoever
  /// comes after it.
  Nanoseconds for_one(Monotonic now) {
    left_ = std::min(reserve_, left_ + (now - looked_) / 10);
    looked_ = now;
    return left_ / 2;
  }
  void waited(Nanoseconds time) { left_ = std::max(left_ - time, Nanoseconds(0)); }

 private:
  Nanoseconds reserve_;
  Nanoseconds left_;
  Monotonic looked_{};
};

}  // namespace firebreak::os
