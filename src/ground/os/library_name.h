// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace firebreak::os {

/// Returns what the library that holds the address calls itself (its DT_SONAME), whatever its file is called.
/// Empty: the address is in no library, or the library has no name.
std::string own_name_of_library(const void* address);

}  // namespace firebreak::os
