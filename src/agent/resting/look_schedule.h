// SPDX-License-Identifier: Apache-2.0
/// When the agent looks whether a program that it asked to rest has answered. Who answers at once is heard
/// at once, and who copies gigabytes to the host first costs the loop little.
#pragma once

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::agent {

inline constexpr Nanoseconds shortest_between_looks = Milliseconds(2);
inline constexpr Nanoseconds longest_between_looks = Milliseconds(100);

/// Returns how long to wait, where the newest question was asked so long ago: as long again as it has waited
/// already. Looks come 2 ms after the question, then 6, 14, 30, 62 and 126, and every 100 ms from there on.
constexpr Nanoseconds until_next_look(Nanoseconds since_question) {
  return std::clamp(since_question + shortest_between_looks, shortest_between_looks, longest_between_looks);
}

}  // namespace firebreak::agent
