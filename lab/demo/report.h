// SPDX-License-Identifier: Apache-2.0
/// The play as a file: figures for programs, a page for people.
#pragma once

#include <string>
#include <vector>

#include "demo/judge.h"
#include "demo/play.h"
#include "ground/platform/machine.h"

namespace firebreak::demo {

/// One JSON document: what was claimed and observed, the figures, every process and every event.
std::string to_json(const Play& play, const std::vector<Check>& checks);

/// Many plays of one machine as one document, without the single steps: what `results/` keeps.
std::string to_json(const std::vector<Play>& plays, const platform::Machine& machine,
                    const std::string& command);

/// One HTML page that needs nothing else: the table, the timeline drawn, the verdict. Prints well.
std::string to_html(const Play& play, const std::vector<Check>& checks);

}  // namespace firebreak::demo
