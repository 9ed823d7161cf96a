// SPDX-License-Identifier: Apache-2.0
#include "idempotency/decision_times.h"

#include <algorithm>
#include <utility>

namespace firebreak::idempotency {

void DecisionTimer::measure(const access::KernelSummary& summary, const access::LaunchArguments& launch,
                            access::DecisionWorkspace& workspace) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  access::decide(summary, launch, workspace);
  const Clock::time_point decided = Clock::now();
  memo_.clear();
  memo_.decide(summary, launch, 1, workspace);
  const Clock::time_point asked = Clock::now();
  memo_.decide(summary, launch, 1, workspace);
  times_.remembered.push_back(Clock::now() - asked);
  times_.decided.push_back(decided - start);
}

DecisionTimes DecisionTimer::take() {
  std::sort(times_.decided.begin(), times_.decided.end());
  std::sort(times_.remembered.begin(), times_.remembered.end());
  return std::move(times_);
}

double percentile_us(const std::vector<std::chrono::nanoseconds>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at].count()) / 1000;
}

}  // namespace firebreak::idempotency
