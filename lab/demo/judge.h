// SPDX-License-Identifier: Apache-2.0
/// The judge says whether the play showed what it claims. Pure.
#pragma once

#include <string>
#include <vector>

#include "demo/play.h"

namespace firebreak::demo {

/// One claim of the demo, and whether it was observed.
struct Check {
  bool observed = false;
  std::string claim;
  std::string instead;  ///< observed instead, where the claim does not hold
};

/// Judges every claim, in the order of the acts.
std::vector<Check> judge(const Play& play);

bool all_observed(const std::vector<Check>& checks);

}  // namespace firebreak::demo
