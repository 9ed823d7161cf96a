// SPDX-License-Identifier: Apache-2.0
/// The fourth act: programs that know nothing of Firebreak, and a rogue in their MPS domain whose kernel
/// raises an exception of an SM. The domain is parked (docs/how/parking.md), so they finish.
#pragma once

#include <string>

#include "demo/theatre.h"

namespace firebreak::demo {

/// Raises the faults that the settings name, one after another, each beside new neighbours. What was observed
/// goes into the record, also where it is not as claimed; an error is what could not be played.
Status play_parked(const Theatre& theatre, ActRecord& record);

/// Reads what `firebreak-checker` says at its end into `neighbour`. False: the line is something else.
bool hear_count(const std::string& line, Neighbour& neighbour);

}  // namespace firebreak::demo
