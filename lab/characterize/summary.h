// SPDX-License-Identifier: Apache-2.0
/// Many runs in few figures.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "characterize/result.h"
#include "ground/base/spread.h"

namespace firebreak::characterize {

/// How often something occurred, by its name.
using Counts = std::map<std::string, int>;
/// The name that occurred most often; the first of several; empty where there is none.
std::string most_frequent(const Counts& counts);

/// Counts what became of one role over the runs of a kind: "lives", or the error or the end that it died of.
struct KindSummary {
  Expected expected;
  int runs = 0;      ///< runs that count
  int problems = 0;  ///< runs that did not get to their end
  std::string last_problem;
  std::string refused;
  std::map<std::string, Counts> fates;        ///< keyed by role
  Counts xids;                                ///< Xids of a run, as "13, 43"
  Counts first_seen_by;                       ///< source's key
  std::map<std::string, Spread> signal_ms;    ///< keyed by source: launch to first signal
  std::map<std::string, Spread> stall_ms;     ///< keyed by role, survivors only
  std::optional<Spread> served_ms;            ///< launch to a new client's first kernel
  int not_served = 0;                         ///< runs after which no new client was served
  std::optional<Spread> new_client_start_ms;  ///< part of that which the new client's own start took
  std::optional<Spread> memory_left_bytes;
  Counts attribution;  ///< verdict's key
  Counts mismatches;   ///< line to runs

  bool as_expected() const { return mismatches.empty() && problems == 0; }
};

struct Summary {
  std::vector<KindSummary> kinds;  ///< sorted as in the catalogue
  /// Maps a class to the place of a typical run of it, for drawing its life.
  std::map<std::string, std::size_t> typical_runs;
};

Summary summarize(const Results& results);

/// "lives", the name of its CUDA error, or how its process ended.
std::string fate_of(const Participant& participant);

}  // namespace firebreak::characterize
