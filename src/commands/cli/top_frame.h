// SPDX-License-Identifier: Apache-2.0
/// One picture of `firebreak top`. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/terminal.h"

namespace firebreak::cli {

/// What the agent has said, and when.
struct StatusMoment {
  std::string status;  ///< JSON, as `firebreak status --json` prints it
  Monotonic at{};
};

/// The lines of a picture that fits `size`, without line ends. Steps a second are those since `before`;
/// empty: there is no earlier picture. What stands in the status comes out as text alone, whatever bytes it
/// has.
std::vector<std::string> top_frame(const StatusMoment& now, const std::optional<StatusMoment>& before,
                                   os::TerminalSize size);

}  // namespace firebreak::cli
