// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::mps {

/// How long to wait before something that keeps failing is tried again: twice as long each time.
class Backoff {
 public:
  Backoff(Milliseconds first, Milliseconds longest, Nanoseconds forgets_after)
      : first_(first), longest_(longest), forgets_after_(forgets_after), next_(first) {}

  /// Returns the pause after a failure of something that `lived` so long; what lived long before has not
  /// failed again, it has failed once more.
  Milliseconds after_failure(Nanoseconds lived) {
    if (lived >= forgets_after_) next_ = first_;
    const Milliseconds now = next_;
    next_ = std::min(next_ * 2, longest_);
    return now;
  }
  /// Begins anew, since it works.
  void reset() { next_ = first_; }

 private:
  Milliseconds first_;
  Milliseconds longest_;
  Nanoseconds forgets_after_;
  Milliseconds next_;
};

}  // namespace firebreak::mps
