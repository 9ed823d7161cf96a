// SPDX-License-Identifier: Apache-2.0
/// A page in a browser without a window.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace firebreak::tests {

/// What a browser shows of the page, as tests/characterize/look_at_page.mjs tells it; a failure of the test
/// where it cannot be seen.
nlohmann::json look_at(const std::string& page);

/// On a phone the page itself has the screen's width, and what is wider scrolls by itself and whole.
void expect_fits_narrow_screen(const nlohmann::json& seen);

}  // namespace firebreak::tests
