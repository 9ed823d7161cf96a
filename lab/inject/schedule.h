// SPDX-License-Identifier: Apache-2.0
/// A schedule says which faults happen when: a file says what may happen, a seed decides what does. Equal
/// files and seeds give equal events, on every machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "inject/kind.h"

namespace firebreak::inject {

/// One line of the file: `times` events, each one of `kinds` at some time from `earliest` to `latest`.
struct ScheduleEntry {
  std::vector<const Kind*> kinds;  ///< has at least one
  std::string into;                ///< the tenant whose process raises it; empty: one of its own
  std::chrono::milliseconds earliest{};
  std::chrono::milliseconds latest{};
  std::uint32_t times = 1;
};

/// One fault of a run; times count from its begin.
struct ScheduledFault {
  std::chrono::milliseconds at{};
  const Kind* kind = nullptr;
  std::string into;
};

/// A JSON document: {"faults": [{"kind": "trap", "at_ms": 100},
///   {"kinds": ["null-load", "misaligned-load"], "from_ms": 0, "to_ms": 500, "times": 3, "into": "decode"},
///   {"class": "sm", "at_ms": 900}]}
/// Classes: mmu-replayable, mmu-non-replayable, sm, termination, device. InvalidArgument says what is wrong,
/// and in which entry.
Result<std::vector<ScheduleEntry>> parse_schedule(std::string_view json);

/// Plans the faults in the order of their times; entries of the same time stay in the file's order.
std::vector<ScheduledFault> plan(const std::vector<ScheduleEntry>& schedule, std::uint64_t seed);

}  // namespace firebreak::inject
