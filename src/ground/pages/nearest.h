// SPDX-License-Identifier: Apache-2.0
/// Which word somebody meant who has mistyped one (pure).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firebreak::pages {

/// The candidate that is fewest letters away: left out, put in, another one, or two that changed places.
/// Empty: none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace firebreak::pages
