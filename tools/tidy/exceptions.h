// SPDX-License-Identifier: Apache-2.0
/// The few places where a rule does not hold, each with its reason, from a small file.
#pragma once

#include <string_view>
#include <vector>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {

/// Drops the findings that a line "RULE PATH: REASON" of `exceptions` covers ('#' starts a comment). Adds one
/// for each line that is malformed, names no rule, or covers nothing any more; `path` is the name those show.
std::vector<Finding> apply_exceptions(std::vector<Finding> findings, std::string_view exceptions,
                                      std::string_view path);

}  // namespace firebreak::tidy
