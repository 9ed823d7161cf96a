// SPDX-License-Identifier: Apache-2.0
/// Two results held side by side: what another driver, or another GPU, does differently.
#pragma once

#include <string>
#include <vector>

#include "characterize/summary.h"

namespace firebreak::characterize {

struct Change {
  std::string kind;
  std::string what;  ///< "co_client", "xids", "first_seen_by", "sources", "xid p50 ms", …
  std::string before;
  std::string after;
};

/// The medians of one figure of one kind.
struct MedianPair {
  std::string kind;
  std::string figure;  ///< a source's key, "stall of outside", "served"
  double before_ms = 0;
  double after_ms = 0;
  bool changed = false;  ///< see medians_differ()
};

struct Comparison {
  platform::Machine before;
  platform::Machine after;
  std::vector<std::string> only_before;  ///< kinds
  std::vector<std::string> only_after;
  std::vector<Change> changes;
  std::vector<MedianPair> medians;
};

/// Kinds that one of them has no counted run of are not compared.
Comparison compare(const Results& before, const Results& after);

/// Tells whether two medians differ by more than the values spread: there are at least three values each,
/// their middle halves do not overlap, and the medians are more than a tenth of the greater apart.
bool medians_differ(const Spread& before, const Spread& after);

/// Renders the comparison for a terminal.
std::string render(const Comparison& comparison);

}  // namespace firebreak::characterize
