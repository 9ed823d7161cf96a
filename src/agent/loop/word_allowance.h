// SPDX-License-Identifier: Apache-2.0
/// How many lines of the log one user's requests may leave.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "ground/base/clock.h"

namespace firebreak::agent {

/// Pure. So many lines at once, and one more each second.
class WordAllowance {
 public:
  static constexpr std::int64_t most = 16;

  /// None: there is to be no line now. Else how many were left out since the last one.
  std::optional<std::size_t> take(Monotonic now) {
    const std::int64_t more = (now - counted_at_) / std::chrono::seconds(1);
    if (more > 0) {
      left_ = std::min(most, left_ + more);
      counted_at_ = now;
    }
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --left_;
    return std::exchange(left_out_, 0);
  }
  /// As if nothing had ever been said.
  bool is_whole(Monotonic now) const {
    return now - counted_at_ >= most * std::chrono::seconds(1) && left_out_ == 0;
  }

 private:
  std::int64_t left_ = most;
  Monotonic counted_at_{};
  std::size_t left_out_ = 0;
};

}  // namespace firebreak::agent
