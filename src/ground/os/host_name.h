// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace firebreak::os {

/// Returns the name of this machine, or of the container that we are in. Thread safe.
std::string host_name();

}  // namespace firebreak::os
