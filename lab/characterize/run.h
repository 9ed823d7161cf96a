// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "characterize/judgement.h"
#include "characterize/record.h"
#include "characterize/scene.h"

namespace firebreak::characterize {

/// Raises one fault in fresh surroundings and tells what came of it; judged already. Blocks for seconds,
/// every wait in it is bounded. `interrupted` is set when somebody ended us in the middle: the run counts for
/// nothing then.
Run run_once(const Settings& settings, const Expected& expected, int repeat, const Clock& clock,
             bool& interrupted);

}  // namespace firebreak::characterize
