// SPDX-License-Identifier: Apache-2.0
/// Runs after runs, until all are done, the time is up or somebody interrupts.
#pragma once

#include <functional>
#include <optional>

#include "characterize/result.h"
#include "characterize/scene.h"

namespace firebreak::characterize {

enum class Ending { Finished, OutOfTime, Interrupted };

struct Campaign {
  Settings settings;
  std::optional<Nanoseconds> budget;  ///< A run begins only where it would probably end within this.
  /// Told what is going on, before each run.
  std::function<void(const std::string&)> on_progress;
  /// Called after each run, whose results are the last in there. Its failure ends the campaign.
  std::function<Status(const Results&)> on_run;
};

/// Adds to `results` what is not in there yet.
Result<Ending> carry_out(const Campaign& campaign, const Clock& clock, Results& results);

}  // namespace firebreak::characterize
