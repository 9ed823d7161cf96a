// SPDX-License-Identifier: Apache-2.0
/// A sample tenant's words with --progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace firebreak::stage {

/// A step that was seen to be done. CLOCK_MONOTONIC.
struct StepMark {
  std::uint64_t step = 0;
  std::int64_t at_ns = 0;
};

/// "step 12 123456789"; empty: the line says something else.
std::optional<StepMark> parse_step_mark(const std::string& line);

}  // namespace firebreak::stage
