// SPDX-License-Identifier: Apache-2.0
/// Reads what `firebreak-lab inject KIND --wait` says about its fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace firebreak::stage {

/// CLOCK_MONOTONIC.
struct FaultReport {
  std::int64_t launched_at_ns = 0;
  std::int64_t answered_at_ns = 0;  ///< 0: it did not live to see an answer
  std::string error_name;
};

/// Fed with its lines: "prepared", then "raised LAUNCHED_AT_NS", then "answered AT_NS ERROR_NAME" if it lives
/// to see one.
struct FaultListener {
  bool prepared = false;
  std::optional<FaultReport> report;

  void hear(const std::string& line);
};

}  // namespace firebreak::stage
