// SPDX-License-Identifier: Apache-2.0
/// Notices to a guarded program's user.
#pragma once

#include <string>

namespace firebreak::guard {

/// One line on the program's standard error. Where it has none, nothing: it goes on either way.
void say(const std::string& line);

}  // namespace firebreak::guard
