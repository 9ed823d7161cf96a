// SPDX-License-Identifier: Apache-2.0
/// The third act around its fault, as lanes to draw. Times are milliseconds after the faulting launch.
#pragma once

#include <string>
#include <vector>

#include "demo/play.h"

namespace firebreak::demo {

struct Mark {
  double at_ms = 0;
  char letter = ' ';  ///< '!' fault, 'P' promoted, 'K' first kernel, 'X' dead
  std::string text;   ///< shown as a tooltip
};

struct Lane {
  std::string name;
  double begin_ms = 0;
  double end_ms = 0;
  std::vector<double> steps_ms;
  std::vector<Mark> marks;
};

struct Timeline {
  double begin_ms = 0;
  double end_ms = 0;
  std::vector<Lane> lanes;
};

/// `act` has a rogue report. The view reaches from the first step to the last end.
Timeline timeline_of(const ActRecord& act);

}  // namespace firebreak::demo
