// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace firebreak::commands {

/// One line about a fault kind that does not exist, with the one that was probably meant.
std::string no_such_kind(const std::string& name);

}  // namespace firebreak::commands
