// SPDX-License-Identifier: Apache-2.0
/// Stands in place of the page where the build had no npm to make it with.
#include <string_view>

namespace firebreak::characterize {

std::string_view page_script();
std::string_view page_style();

std::string_view page_script() { return {}; }
std::string_view page_style() { return {}; }

}  // namespace firebreak::characterize
