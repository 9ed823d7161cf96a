// SPDX-License-Identifier: Apache-2.0
/// How long decisions about launches take.
#pragma once

#include <chrono>
#include <vector>

#include "kernels/access/decision_memo.h"

namespace firebreak::idempotency {

/// Sorted.
struct DecisionTimes {
  std::vector<std::chrono::nanoseconds> decided;     ///< the second of each launch
  std::vector<std::chrono::nanoseconds> remembered;  ///< the same through a DecisionMemo
};

/// For one thread.
class DecisionTimer {
 public:
  /// Of a launch that was decided in that workspace just before.
  void measure(const access::KernelSummary& summary, const access::LaunchArguments& launch,
               access::DecisionWorkspace& workspace);
  DecisionTimes take();

 private:
  DecisionTimes times_;
  access::DecisionMemo memo_;
};

/// Of sorted times, in microseconds; `part`: 0.5 for the median. None: 0.
double percentile_us(const std::vector<std::chrono::nanoseconds>& sorted, double part);

}  // namespace firebreak::idempotency
