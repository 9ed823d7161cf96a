// SPDX-License-Identifier: Apache-2.0
/// Results as one HTML file that needs nothing else; its sources are in page/.
#pragma once

#include <string>

#include "characterize/comparison.h"

namespace firebreak::characterize {

/// Ok, or why this build cannot write the page.
Status page_is_there();

/// `against`, where there is one, gets a part of its own.
std::string to_html(const Results& results, const Comparison* against);

}  // namespace firebreak::characterize
