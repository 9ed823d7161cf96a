// SPDX-License-Identifier: Apache-2.0
/// The claims of the fourth act, and what it says of itself in words. Pure.
#pragma once

#include <string>
#include <vector>

#include "demo/judge.h"
#include "demo/play.h"

namespace firebreak::demo {

/// Judges every claim of every fault that was to be played.
void judge_parked(const Play& play, const ActRecord& act, std::vector<Check>& checks);

/// Tells whether it finished its own work, with every word of every result right.
bool is_unharmed(const Neighbour& neighbour);
/// "finished, 812 launches right", or what became of it instead.
std::string fate_of(const Neighbour& neighbour);
/// Tells whether it finished so after it had gone on in another domain.
bool is_as_claimed(const Mover& mover);
std::string fate_of(const Mover& mover);
/// Tells whether the agent named the rogue, and nobody else.
bool is_rogue_alone_named(const ParkedFault& fault);
/// "named after 1.23 ms, then MISALIGNED_ADDRESS", or what was observed instead.
std::string fate_of_rogue(const ParkedFault& fault);

}  // namespace firebreak::demo
