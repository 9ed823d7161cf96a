// SPDX-License-Identifier: Apache-2.0
/// What the analysis makes of the kernels of PTX files, counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "idempotency/decision_times.h"

namespace firebreak::idempotency {

struct KernelSurvey {
  std::uint64_t files = 0;
  std::uint64_t unread_files = 0;  ///< that the parser does not take at all
  std::uint64_t kernels = 0;
  std::uint64_t storing_kernels = 0;              ///< with a store or an atomic to global memory, or refused
  std::map<std::string, std::uint64_t> refusals;  ///< kernels by cause
  /// Of one made-up launch each: every pointer to memory of its own, every number 64, 16 blocks of 256
  /// threads.
  std::map<std::string, std::uint64_t> verdicts;
  std::chrono::nanoseconds parse_time{};
  std::chrono::nanoseconds analysis_time{};
  DecisionTimes times;
};

KernelSurvey survey(const std::vector<std::string>& files);

std::string to_text(const KernelSurvey& survey);

}  // namespace firebreak::idempotency
