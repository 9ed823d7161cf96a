// SPDX-License-Identifier: Apache-2.0
/// What a program launched (program/record/launch_folder.h), decided one by one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ground/base/result.h"
#include "idempotency/decision_times.h"
#include "kernels/access/decision.h"

namespace firebreak::idempotency {

/// Launches of one kind.
struct LaunchCount {
  std::uint64_t launches = 0;
  std::uint64_t distinct = 0;
};

struct RecordedLaunches {
  LaunchCount all;
  std::uint64_t unrecorded = 0;      ///< beyond what a recorder keeps apart; in `all`, too
  std::uint64_t graph_launches = 0;  ///< the kernels in them count once, when the graph was made
  std::uint64_t unread_lines = 0;
  /// Of code whose PTX is not known: "machine code", or why else.
  std::map<std::string, LaunchCount> without_ptx;
  LaunchCount
      beside;  ///< of the others: what ran was machine code, and PTX of the same source lies beside it
  std::map<std::string, LaunchCount> verdicts;  ///< of the others
  std::map<std::string, LaunchCount> causes;    ///< of those that are not idempotent, or not known
  std::map<std::string, std::map<std::string, LaunchCount>> kernels;  ///< by kernel, by verdict and cause
  DecisionTimes times;                                                ///< of each distinct launch
};

/// Why it is not idempotent, or not known, in words that many launches share; empty: it is idempotent.
std::string cause_of(const access::KernelSummary& summary, const access::Decision& decision);

/// NotFound: nothing was recorded there. PTX that cannot be read, and lines that are cut off, are counted.
Result<RecordedLaunches> decide_recorded(const std::string& folder);

std::string to_json(const RecordedLaunches& recorded);

}  // namespace firebreak::idempotency
