// SPDX-License-Identifier: Apache-2.0
/// One run held against what the catalogue expects of its kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "characterize/record.h"
#include "inject/kind.h"

namespace firebreak::characterize {

/// A kind's expectation in the words of results.
struct Expected {
  std::string kind;
  std::string summary;
  std::string fault_class;  ///< a key
  std::string faulter;      ///< the name of the CUDA error; empty: it sees none
  std::string co_client;    ///< the same; empty: it lives
  std::string outsider;
  std::string sometimes;  ///< the error that some runs show in place of either; empty: none
  std::vector<int> xids;
  std::string first_seen_by;  ///< a source's key; empty: nobody sees it, because the hardware lets it pass
  bool measured = true;       ///< false: nobody has looked yet

  /// Tells whether the guard's ranges are expected to take it.
  bool is_contained() const { return first_seen_by == stray_source; }
  bool is_fault() const { return !first_seen_by.empty(); }
  /// The error that a victim is expected to see; empty: it lives.
  const std::string& victim(Role role) const { return role == Role::CoClient ? co_client : outsider; }
  /// Tells whether `seen` is `error`, or what comes in its place at times.
  bool fits(const std::string& seen, const std::string& error) const {
    return seen == error || (!error.empty() && !sometimes.empty() && seen == sometimes);
  }
};

using ErrorName = std::function<std::string(CUresult)>;

Expected expected_of(const inject::Kind& kind, const ErrorName& error_name);

/// The same where the faulter runs under the guard. `maps_page_zero`: whether processes here may.
Expected expected_under_guard(const inject::Kind& kind, const ErrorName& error_name, bool maps_page_zero);

/// The same where its descriptors are held: nobody notices a process that ends.
Expected expected_under_hold(const inject::Kind& kind, const ErrorName& error_name);

/// How the run differs from it, one line each; empty: not at all.
std::vector<std::string> mismatches(const Run& run, const Expected& expected);

/// Tells whether everything that is expected was seen, so that only surprises are left to wait for.
bool seen_all(const Run& so_far, const Expected& expected);

}  // namespace firebreak::characterize
